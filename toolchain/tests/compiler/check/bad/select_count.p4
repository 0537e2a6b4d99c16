parser p(in bit<8> x) {
    state start {
        transition select(x, x) {
            (1, 2, 3): accept;
            default: reject;
        }
    }
}
