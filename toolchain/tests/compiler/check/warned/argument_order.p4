struct pair { bit<8> first; bit<8> second; }
@noWarn("unused")
control c(inout pair x) {
    action both(out bit<8> a, out bit<8> b) { a = 1; b = 2; }
    apply { both(x.second, x.second); }
}
