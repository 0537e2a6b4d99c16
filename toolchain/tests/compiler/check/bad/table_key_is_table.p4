#include <core.p4>
control c(in bit<8> port) {
    table port {
        key = { port: exact; }
        actions = { NoAction; }
    }
    apply { port.apply(); }
}
