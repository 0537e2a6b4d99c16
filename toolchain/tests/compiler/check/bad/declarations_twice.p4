#include <core.p4>
extern E { E(); void E(in bit<8> x); void m(in bit<8> x); void m(in bit<8> x); }
void twice(in bit<8> x) { }
void twice(in bit<8> x) { }
