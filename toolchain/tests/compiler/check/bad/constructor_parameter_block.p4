control inner() {
    apply {}
}
control outer()(inner i) {
    apply {}
}
