#include <core.p4>
control c(in bit<8> x, in bit<8> y) {
    action a() { }
    action b() { }
    table keys {
        key = { 5: exact; x: ternary; }
        actions = { @tableonly a; @defaultonly b; NoAction; }
        default_action = a();
        const entries = { const (_, 1): b(); }
    }
    table numbers {
        key = { x: ternary; }
        actions = { NoAction; }
        size = y;
        largest_priority_wins = 1;
        entries = { 1: NoAction(); priority = 3: 2: NoAction(); }
    }
    apply { keys.apply(); numbers.apply(); }
}
