#include <core.p4>
action a() {}
parser p() {
    state start {
        a();
        transition accept;
    }
}
