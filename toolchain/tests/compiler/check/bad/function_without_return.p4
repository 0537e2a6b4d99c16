bit<8> f(in bit<8> x) {
    if (x == 1) {
        return 2;
    }
}
