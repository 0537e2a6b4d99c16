extern bit<8> random(in bit<8> high);
control c(out bit<8> x) {
    apply {
        bit<8> random = 3;
        x = random;
    }
}
