#include <core.p4>
control c(in bit<8> x) {
    table t {
        key = { x: ternary; }
        actions = { NoAction; }
        priority_delta = 0;
        entries = {
            priority = 10: 1: NoAction();
            2: NoAction();
        }
    }
    table u {
        key = { x: ternary; }
        actions = { NoAction; }
        priority_delta = 1;
        size = -1;
    }
    apply { t.apply(); u.apply(); }
}
