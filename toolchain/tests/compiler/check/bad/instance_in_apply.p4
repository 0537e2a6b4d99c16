#include <core.p4>
extern e {
    e();
}
control c() {
    apply {
        e() x;
    }
}
