#include <core.p4>
struct s {
    bit<8> a;
}
parser p(packet_in packet, out s x) {
    state start {
        packet.extract(x);
        transition accept;
    }
}
