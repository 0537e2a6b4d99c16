bit<8> f() { return 1; }
void changed(inout bit<8> x = 1) { }
extern void optional_one(@optional in bit<8> x = 1);
void known(in bit<8> x = f()) { }
