parser p() {
    state start {
        transition accept;
    }
    state accept {}
}
