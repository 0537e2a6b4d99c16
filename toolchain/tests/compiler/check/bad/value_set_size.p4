parser p(in bit<8> x) {
    value_set<bit<8>>(true) a;
    value_set<bit<8>>(-1) b;
    state start {
        transition select(x) { a: accept; b: reject; }
    }
}
