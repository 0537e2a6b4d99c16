#include <core.p4>
control c() {
    action a() {}
    table t {
        actions = { a; }
    }
    action b() { t.apply(); }
    apply {}
}
