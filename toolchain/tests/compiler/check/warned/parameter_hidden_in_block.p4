control c(inout bit<8> x, out bit<8> y) {
    bit<8> x = 3;
    apply { y = x; }
}
