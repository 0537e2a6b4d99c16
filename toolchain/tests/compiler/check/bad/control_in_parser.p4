#include <core.p4>
control c() {
    apply {}
}
parser p() {
    c() x;
    state start {
        transition accept;
    }
}
