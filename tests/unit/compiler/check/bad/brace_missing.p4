control c() {
    apply {
