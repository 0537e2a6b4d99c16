control spare(inout bit<8> x) {
    apply { x = 2; }
}
