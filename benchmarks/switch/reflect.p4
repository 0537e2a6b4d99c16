// The least a BMv2 program can do: each frame goes back to where it came from.
#include <core.p4>
#include <v1model.p4>

struct nothing_t {}

parser Accept(packet_in packet, out nothing_t hdr, inout nothing_t meta,
              inout standard_metadata_t standard_metadata) {
    state start {
        transition accept;
    }
}

control Checksum(inout nothing_t hdr, inout nothing_t meta) {
    apply {}
}

control Reflect(inout nothing_t hdr, inout nothing_t meta,
                inout standard_metadata_t standard_metadata) {
    apply {
        standard_metadata.egress_spec = standard_metadata.ingress_port;
    }
}

control Nothing(inout nothing_t hdr, inout nothing_t meta,
               inout standard_metadata_t standard_metadata) {
    apply {}
}

control Emit(packet_out packet, in nothing_t hdr) {
    apply {}
}

V1Switch(Accept(), Checksum(), Reflect(), Nothing(), Checksum(), Emit()) main;
