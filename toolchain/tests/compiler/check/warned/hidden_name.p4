@noWarn("unused") const bit<8> k = 1;
@noWarn("unused")
control c(inout bit<8> x) {
    apply {
        bit<8> k = 2;
        x = k;
    }
}
