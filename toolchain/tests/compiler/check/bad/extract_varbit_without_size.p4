#include <core.p4>
header v_t {
    varbit<32> options;
}
parser p(packet_in packet, out v_t v) {
    state start {
        packet.extract(v);
        transition accept;
    }
}
