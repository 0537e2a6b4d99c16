parser p() {
    state start {
        transition accept;
    }
    state start {
        transition accept;
    }
}
