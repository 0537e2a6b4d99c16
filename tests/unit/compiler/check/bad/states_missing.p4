parser p() {
}
