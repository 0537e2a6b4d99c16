#include <core.p4>
extern e {
    e();
    abstract bit<8> f(in bit<8> x);
}
e() x;
