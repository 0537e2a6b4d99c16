#include <core.p4>
extern e {
    e(bit<8> n);
}
e() x;
