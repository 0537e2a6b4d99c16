#include <core.p4>
control proto(inout bit<8> x);
package top(proto p);
control c(inout bit<16> x) {
    apply {}
}
top(c()) main;
