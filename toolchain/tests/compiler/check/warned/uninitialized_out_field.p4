struct pair { bit<8> first; bit<8> second; }
@noWarn("unused")
control c(out pair x) {
    apply { x.second = 1; }
}
