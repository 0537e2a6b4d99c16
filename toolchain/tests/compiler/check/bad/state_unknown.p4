parser p() {
    state start {
        transition nxt;
    }
}
