#include <core.p4>
control c(packet_out packet, in bit<8> x) {
    apply {
        packet.emit(x);
    }
}
