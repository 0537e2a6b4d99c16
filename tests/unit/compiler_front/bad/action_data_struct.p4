struct pair { bit<8> first; bit<8> second; }
control c(inout pair p) {
    action set(pair given) { p = given; }
    table t {
        actions = { set; }
    }
    apply { t.apply(); }
}
