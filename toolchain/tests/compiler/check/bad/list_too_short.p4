#include <core.p4>
struct s {
    bit<8> a;
    bit<8> b;
}
const s x = { 1 };
