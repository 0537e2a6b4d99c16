parser p(in bit<8> x) {
    state start {
        transition select(x) {
            true: accept;
        }
    }
}
