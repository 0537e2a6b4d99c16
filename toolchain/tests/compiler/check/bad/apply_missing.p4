control c() {
    bit<8> x;
}
