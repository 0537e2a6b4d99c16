action a(bit<8> x, in bit<8> y) {}
