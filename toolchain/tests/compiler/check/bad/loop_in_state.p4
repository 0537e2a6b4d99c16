parser p() {
    state start {
        for (bit<8> i in 1..3) {}
        transition accept;
    }
}
