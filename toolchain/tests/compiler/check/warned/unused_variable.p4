@noWarn("unused")
control c(inout bit<8> x) {
    apply {
        bit<8> spare = 1;
        x = 2;
    }
}
