#include <core.p4>
control c() {
    action a() {}
    action b() {}
    table t {
        actions = { a; }
    }
    apply {
        switch (t.apply().action_run) {
            b: {}
        }
    }
}
