#include <core.p4>
@noWarn("unused")
parser p(packet_in packet, in bit<8> x) {
    state start {
        transition select(x) {
            default: accept;
            1: reject;
        }
    }
}
