header h_t { bit<8> first; bit<8> second; }
@noWarn("unused")
control c(inout bit<8> x) {
    apply {
        h_t y;
        y.setValid();
        y.first = 1;
        x = y.second;
    }
}
