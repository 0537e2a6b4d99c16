@noWarn("unused")
control c(inout bit<8> x) {
    action spare() { x = 1; }
    apply { x = 2; }
}
