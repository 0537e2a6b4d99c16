#include <core.p4>
control c(in bit<8> x) {
    table rising {
        key = { x: ternary; }
        actions = { NoAction; }
        largest_priority_wins = false;
        priority_delta = 10;
        entries = {
            priority = 10: 1: NoAction();
            2: NoAction();
            priority = 20: 3: NoAction();
            priority = 15: 4: NoAction();
        }
    }
    table falling {
        key = { x: ternary; }
        actions = { NoAction; }
        entries = {
            priority = 10: 1: NoAction();
            2: NoAction();
            priority = 11: 3: NoAction();
        }
    }
    table silent {
        key = { x: ternary; }
        actions = { NoAction; }
        @noWarn("duplicate-priorities")
        entries = {
            priority = 10: 1: NoAction();
            priority = 10: 2: NoAction();
        }
    }
    apply { rising.apply(); falling.apply(); silent.apply(); }
}
