#include <core.p4>
parser spare(packet_in p) {
    state start { transition accept; }
}
