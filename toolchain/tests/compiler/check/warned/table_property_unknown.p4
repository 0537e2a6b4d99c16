#include <core.p4>
control c(in bit<8> x) {
    table t {
        key = { x: exact; }
        actions = { NoAction; }
        counter = 7;
    }
    apply { t.apply(); }
}
