bit<8> spare(in bit<8> x) { return x; }
