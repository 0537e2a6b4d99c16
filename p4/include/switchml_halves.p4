// switchml.p4 for floats of 16 bits: the body of a program that includes the format of one type before it.
#include "headers.p4"
#include "quads.p4"

struct headers_t {
    ethernet_t      ethernet;
    tag_t[MAX_TAGS] tags;
    ipv4_h          ipv4;
    ipv6_h          ipv6;
    udp_t           udp;
    aggregation_t   aggregation;
    opening_t       opening;
    values_t        values;
    quad_t[QUADS]   quads;    // a chunk of floats of 16 bits
}

#define UDP_CHECKED { HEADERS_CHECKED, BODY_CHECKED EACH_QUAD(QUAD_CHECKED) }

#define SETS 2

#include "metadata.p4"
#include "udp_layers.p4"
#include "forwarding.p4"
#include "checksums.p4"
#include "sender.p4"
#include "aggregation.p4"
#include "sums.p4"
#include "half_sums.p4"
#include "switchml_egress.p4"

parser SwitchmlParser(packet_in packet, out headers_t hdr, inout metadata_t meta,
                      inout standard_metadata_t standard_metadata) {
    UdpLayers() udp_layers;
    bit<16> port;
    bit<16> quads = 0;  // how many were extracted

    state start {
        udp_layers.apply(packet, hdr, port);
        transition select(port) {
            AGGREGATOR_PORT: parse_aggregation;
            default: accept;
        }
    }

    state parse_aggregation {
        packet.extract(hdr.aggregation);
        transition select(hdr.aggregation.kind) {
            OPENING: parse_opening;
            OPENING | RESULT: parse_opening;
            INT32: parse_values;
            SCALED: parse_values;
            INT32 | RESULT: parse_values;
            SCALED | RESULT: parse_values;
            HALVES_KIND: parse_halves;
            HALVES_KIND | RESULT: parse_halves;
            default: accept;
        }
    }

    state parse_opening {
        packet.extract(hdr.opening);
        meta.right_length = OPENING_LENGTH;
        transition accept;
    }

    state parse_values {
        packet.extract(hdr.values);
        meta.right_length = VALUES_LENGTH;
        transition accept;
    }

    state parse_halves {
        packet.extract(hdr.quads.next);
        quads = quads + 1;
        transition select(quads) {
            QUADS: end_halves;
            default: parse_halves;
        }
    }

    state end_halves {
        meta.right_length = VALUES_LENGTH;
        transition accept;
    }
}

control SwitchmlIngress(inout headers_t hdr, inout metadata_t meta,
                        inout standard_metadata_t standard_metadata) {
    Sender() sender;
    Aggregation() aggregation;
    Sums() sums;
    HalfSums() half_sums;
    Forwarding() forwarding;

    apply {
        if (hdr.aggregation.isValid()) {
            sender.apply(hdr, meta, standard_metadata);
            aggregation.apply(hdr, meta, standard_metadata);
            sums.apply(hdr, meta);
            half_sums.apply(hdr, meta);
        } else {
            forwarding.apply(hdr, meta, standard_metadata);
        }
    }
}

control SwitchmlDeparser(packet_out packet, in headers_t hdr) {
    apply {
        packet.emit(hdr.ethernet);
        packet.emit(hdr.tags);
        packet.emit(hdr.ipv4);
        packet.emit(hdr.ipv6);
        packet.emit(hdr.udp);
        packet.emit(hdr.aggregation);
        packet.emit(hdr.opening);
        packet.emit(hdr.values);
        packet.emit(hdr.quads);
    }
}

V1Switch(SwitchmlParser(), VerifyChecksums(), SwitchmlIngress(), SwitchmlEgress(),
         ComputeChecksums(), SwitchmlDeparser()) main;
