@noWarn("unused")
control c(inout bit<8> x) {
    bit<8> y;
    apply { x = y; }
}
