#include <core.p4>
control c() {
    @name("same") action a() {}
    @name("same") action b() {}
    table t {
        actions = { a; b; }
    }
    apply { t.apply(); }
}
control proto();
package top(proto p);
top(c()) main;
