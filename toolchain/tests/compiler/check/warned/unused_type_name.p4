typedef bit<48> spare_t;
