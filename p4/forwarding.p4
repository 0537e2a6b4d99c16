// Plain forwarding for systems whose hosts do all the work: by MAC address and IPv4 route, as include/forwarding.p4
// says. The switch keeps nothing of what it forwards, and has no compile-time parameters.
#include <core.p4>
#include <v1model.p4>

#include "include/lower_headers.p4"

struct headers_t {
    ethernet_t      ethernet;
    tag_t[MAX_TAGS] tags;
    ipv4_h          ipv4;
    ipv6_h          ipv6;
}

struct metadata_t { }

#include "include/lower_layers.p4"
#include "include/forwarding.p4"

parser ForwardingParser(packet_in packet, out headers_t hdr, inout metadata_t meta,
                        inout standard_metadata_t standard_metadata) {
    LowerLayers() lower_layers;

    state start {
        lower_layers.apply(packet, hdr);
        transition accept;
    }
}

control ForwardingVerifyChecksum(inout headers_t hdr, inout metadata_t meta) {
    apply { }
}

control ForwardingIngress(inout headers_t hdr, inout metadata_t meta,
                          inout standard_metadata_t standard_metadata) {
    Forwarding() forwarding;

    apply {
        forwarding.apply(hdr, meta, standard_metadata);
    }
}

control ForwardingEgress(inout headers_t hdr, inout metadata_t meta,
                         inout standard_metadata_t standard_metadata) {
    apply {
        if (standard_metadata.instance_type == INSTANCE_REPLICATION
            && standard_metadata.egress_port == standard_metadata.ingress_port) {
            mark_to_drop(standard_metadata);  // a flooded frame does not return to the port it came from
        }
    }
}

control ForwardingComputeChecksum(inout headers_t hdr, inout metadata_t meta) {
    apply { }
}

control ForwardingDeparser(packet_out packet, in headers_t hdr) {
    apply {
        packet.emit(hdr.ethernet);
        packet.emit(hdr.tags);
        packet.emit(hdr.ipv4);
        packet.emit(hdr.ipv6);
    }
}

V1Switch(ForwardingParser(), ForwardingVerifyChecksum(), ForwardingIngress(), ForwardingEgress(),
         ForwardingComputeChecksum(), ForwardingDeparser()) main;
