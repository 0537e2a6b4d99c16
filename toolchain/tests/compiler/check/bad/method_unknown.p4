#include <core.p4>
parser p(packet_in packet) {
    state start {
        packet.extrakt(1);
        transition accept;
    }
}
