header h_t { bit<8> x; }
control c(inout h_t h, in bit<8> n, out bit<8> y, out bit<8> z) {
    apply {
        if (n == 1) { h.setInvalid(); }
        y = h.x;
        z = 0;
        if (h.isValid()) { z = h.x; }
    }
}
