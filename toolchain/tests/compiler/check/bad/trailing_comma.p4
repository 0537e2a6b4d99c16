action a(bit<8> x,) {}
