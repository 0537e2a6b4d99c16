parser p() {
    state start {
        transition accept
    }
}
