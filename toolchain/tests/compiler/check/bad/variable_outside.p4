bit<8> x;
