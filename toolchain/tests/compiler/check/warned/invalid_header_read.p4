#include <core.p4>
header h_t { bit<8> value; }
struct headers { h_t first; h_t second; }
@noWarn("unused")
parser p(packet_in packet, out headers h) {
    state start {
        packet.extract(h.first);
        transition select(h.first.value) {
            1: more;
            default: accept;
        }
    }
    state more {
        transition select(h.second.value) {
            1: accept;
        }
    }
}
