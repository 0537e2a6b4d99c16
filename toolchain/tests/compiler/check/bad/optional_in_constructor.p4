control c()(@optional bit<8> x) {
    apply {}
}
