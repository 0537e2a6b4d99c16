@deprecated("use two") bit<8> one() { return 1; }
@noWarn("unused")
bit<8> f() { return one(); }
