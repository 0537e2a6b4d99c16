#include <core.p4>
control c()(in bit<8> n) {
    apply {}
}
