parser p(in bit<8> x) {
    state start {
        transition select(x) {
            1: next;
            default: next;
        }
    }
    state next { transition select(x) { default: accept; } }
}
