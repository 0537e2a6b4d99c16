#include <core.p4>
control c(in bit<8> x, in bit<8> y) {
    table t {
        key = { x: ternary; y: exact; }
        actions = { NoAction; }
        const entries = {
            (0x10 &&& 0xf0, 1): NoAction();
            (0x12, 2): NoAction();
            (0x12 &&& 0xfe, 1): NoAction();
            (0x20 &&& 0xe0, 1): NoAction();
            (_, 2): NoAction();
            (7, 2): NoAction();
        }
    }
    table longest {
        key = { x: lpm; y: ternary; }
        actions = { NoAction; }
        const entries = {
            (0x10 &&& 0xf0, _): NoAction();
            (0x12, _): NoAction();
            (0x12, 1): NoAction();
        }
    }
    apply { t.apply(); longest.apply(); }
}
