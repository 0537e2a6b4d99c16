@noWarn("unused")
control c(inout bit<8> x, in bool b) {
    apply {
        bit<8> y;
        if (b) { y = 1; }
        x = y;
    }
}
