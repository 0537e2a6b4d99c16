bit<8> f() { return 1; }
enum bit<8> e_t { one = f() }
