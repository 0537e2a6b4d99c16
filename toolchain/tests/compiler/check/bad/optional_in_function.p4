void f(@optional in bit<8> x) {}
