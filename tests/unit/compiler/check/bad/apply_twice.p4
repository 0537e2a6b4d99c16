control c() {
    apply {}
    apply {}
}
