@noWarn("unused")
bit<8> f(in bool b, out bit<8> x) {
    if (b) { return 1; }
    x = 2;
    return 2;
}
