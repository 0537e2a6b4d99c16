#include <core.p4>
control c(in bit<8> x) {
    table keyless { actions = { NoAction; } size = 16; }
    table fixed {
        key = { x: exact; }
        actions = { NoAction; }
        const entries = { 1: NoAction(); }
        size = 16;
    }
    apply { keyless.apply(); fixed.apply(); }
}
