parser p(out bit<8>[3] a) {
    state start {
        a.next = 1;
        transition accept;
    }
}
