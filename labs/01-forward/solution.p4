// Lab 01: the switch sends each packet to the port of the host that it is for.
#include <core.p4>
#include <v1model.p4>

// The first 14 bytes of every packet: an Ethernet header.
header ethernet_t {
    bit<48> dst;   // the receiver's address
    bit<48> src;   // the sender's address
    bit<16> type;  // what follows
}

struct headers_t { ethernet_t ethernet; }
struct metadata_t { }

// 1. The parser reads the headers from the bytes of the packet.
parser MyParser(packet_in packet, out headers_t hdr, inout metadata_t meta,
                inout standard_metadata_t standard_metadata) {
    state start {
        packet.extract(hdr.ethernet);
        transition accept;
    }
}

control MyVerifyChecksum(inout headers_t hdr, inout metadata_t meta) { apply { } }

// 2. Ingress decides what happens to the packet.
control MyIngress(inout headers_t hdr, inout metadata_t meta,
                  inout standard_metadata_t standard_metadata) {
    action drop() {
        mark_to_drop(standard_metadata);
    }

    action forward(bit<9> port) {
        standard_metadata.egress_spec = port;
    }

    // Agglab fills this table: for each host's address, the action forward with the host's port.
    table macs {
        key = { hdr.ethernet.dst: exact; }
        actions = { forward; drop; }
        default_action = drop();
    }

    apply {
        macs.apply();
    }
}

// 3. Egress may still change the packet after its port is known.
control MyEgress(inout headers_t hdr, inout metadata_t meta,
                 inout standard_metadata_t standard_metadata) { apply { } }

control MyComputeChecksum(inout headers_t hdr, inout metadata_t meta) { apply { } }

// 4. The deparser writes the headers back, in front of the rest of the packet.
control MyDeparser(packet_out packet, in headers_t hdr) {
    apply {
        packet.emit(hdr.ethernet);
    }
}

V1Switch(MyParser(), MyVerifyChecksum(), MyIngress(), MyEgress(), MyComputeChecksum(),
         MyDeparser()) main;
