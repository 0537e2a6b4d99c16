@noWarn("unused")
control c(inout bit<8> x) {
    action set(in bit<8> given, in bit<8> spare) { x = given; }
    apply { set(1, 2); }
}
