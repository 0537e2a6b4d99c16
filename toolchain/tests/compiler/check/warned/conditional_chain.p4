control c(in bool a, in bool b, out bool r, out bool s, out bit<8> n) {
    apply {
        r = a ? b : b ? a : b;
        s = a ? b : (b ? a : b);
        n = a ? 8w1 : b ? 8w2 : 8w3;
        n = a ? 8w1 : (b ? 8w2 : 8w3);
    }
}
