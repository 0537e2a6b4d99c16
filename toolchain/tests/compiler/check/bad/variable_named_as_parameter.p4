control c(inout bit<8> x) {
    apply {
        bit<8> x = 1;
    }
}
