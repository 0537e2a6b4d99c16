parser p(in bit<8> x) {
    state start { transition select(x) { 1: more; default: reject; } }
    state more { transition reject; }
}
