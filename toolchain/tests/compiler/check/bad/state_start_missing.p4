parser p() {
    state first {
        transition accept;
    }
}
