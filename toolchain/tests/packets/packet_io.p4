// Packet-in and packet-out: headers that a controller sends and gets at the CPU port.
#include <core.p4>
#include <v1model.p4>

const bit<9> CPU = 64;

@controller_header("packet_out") header out_t { bit<9> port; bit<7> pad; }
@controller_header("packet_in") header in_t { bit<9> port; bit<7> reason; }
header data_t { bit<8> kind; }
struct headers_t { out_t to; in_t from; data_t d; }
struct meta_t { }
parser Parse(packet_in p, out headers_t h, inout meta_t m, inout standard_metadata_t s) {
    state start {
        transition select(s.ingress_port) {
            CPU: controlled;
            default: data;
        }
    }
    state controlled { p.extract(h.to); transition data; }
    state data { p.extract(h.d); transition accept; }
}
#include "include/rest.p4"

control Work(inout headers_t h, inout meta_t m, inout standard_metadata_t s) {
    apply {
        if (h.to.isValid()) {
            s.egress_spec = h.to.port;
            h.to.setInvalid();
        } else if (h.d.kind == 1) {
            s.egress_spec = CPU;
            h.from.setValid();
            h.from.port = s.ingress_port;
            h.from.reason = 3;
        } else {
            s.egress_spec = 5;
        }
    }
}
V1Switch(Parse(), NoVerify(), Work(), NoEgress(), NoCompute(), Emit()) main;
