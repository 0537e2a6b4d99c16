#include <core.p4>
control c(in bit<8> x) {
    table t {
        key = { x : exact; }
        actions = { NoAction; }
        const entries = {
            1 : NoAction();
            2 : NoAction();
            1 : NoAction();
        }
    }
    apply { t.apply(); }
}
