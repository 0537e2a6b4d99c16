extern memory { memory(bit<32> size); }
@noWarn("unused")
control c(inout bit<8> x) {
    memory(4) spare;
    apply { x = 2; }
}
