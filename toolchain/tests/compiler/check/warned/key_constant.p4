#include <core.p4>
@noWarn("unused")
control c(in bit<8> x) {
    table t {
        key = { x : exact; 8w1 : exact @name("one"); }
        actions = { NoAction; }
    }
    apply { t.apply(); }
}
