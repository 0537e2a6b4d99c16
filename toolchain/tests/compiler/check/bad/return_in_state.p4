parser p() {
    state start {
        return;
    }
}
