header h_t { bit<8> value; }
@noWarn("unused")
control c(inout h_t h) {
    apply {
        h.setInvalid();
        h.value = 1;
    }
}
