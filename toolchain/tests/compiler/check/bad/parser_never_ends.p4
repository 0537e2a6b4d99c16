parser p() {
    state start {
        transition start;
    }
}
