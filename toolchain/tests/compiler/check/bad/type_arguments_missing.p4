#include <core.p4>
extern e<T> {
    e();
}
control c(e x) {
    apply {}
}
