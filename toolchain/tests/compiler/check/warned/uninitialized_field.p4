struct pair { bit<8> first; bit<8> second; }
@noWarn("unused")
control c(inout pair x) {
    apply {
        pair y;
        y.first = 1;
        x = y;
    }
}
