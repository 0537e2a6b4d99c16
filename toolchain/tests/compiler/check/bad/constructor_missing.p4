#include <core.p4>
extern e {
    void f();
}
e() x;
