#include <core.p4>
@noWarn("unused")
control c(inout bit<8> x) {
    table spare {
        key = { x : exact; }
        actions = { NoAction; }
    }
    apply { x = 2; }
}
