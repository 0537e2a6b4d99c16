// switchml.p4 for jobs whose contributions have few bits per value (docs/numbers.md): they are widened when they
// arrive. Compile-time parameters: LANES, SLOTS, WIRE_BITS (include/narrow.p4).
#include <core.p4>
#include <v1model.p4>

#include "include/headers.p4"
#include "include/narrow.p4"

struct headers_t {
    ethernet_t      ethernet;
    tag_t[MAX_TAGS] tags;
    ipv4_h          ipv4;
    ipv6_h          ipv6;
    udp_t           udp;
    aggregation_t   aggregation;
    opening_t       opening;
    values_t        values;
    narrow_t        narrow;
}

#define UDP_CHECKED { HEADERS_CHECKED, BODY_CHECKED EACH_WORD(NARROW_CHECKED) }

#define SETS 2

#include "include/metadata.p4"
#include "include/udp_layers.p4"
#include "include/forwarding.p4"
#include "include/checksums.p4"
#include "include/sender.p4"
#include "include/aggregation.p4"
#include "include/sums.p4"
#include "include/switchml_egress.p4"

const bit<16> NARROW_LENGTH = HEADERS_LENGTH + 2 * LANES;

parser SwitchmlParser(packet_in packet, out headers_t hdr, inout metadata_t meta,
                      inout standard_metadata_t standard_metadata) {
    UdpLayers() udp_layers;
    bit<16> port;

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
            NARROW: parse_narrow;
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

    state parse_narrow {
        packet.extract(hdr.narrow);
        meta.right_length = NARROW_LENGTH;
        transition accept;
    }
}

control SwitchmlIngress(inout headers_t hdr, inout metadata_t meta,
                        inout standard_metadata_t standard_metadata) {
    Sender() sender;
    Aggregation() aggregation;
    Sums() sums;
    Forwarding() forwarding;

    action widen() {
        hdr.values.setValid();
        EACH_WORD(WIDEN)
        hdr.narrow.setInvalid();
        hdr.aggregation.kind = SCALED;
        hdr.udp.len = VALUES_LENGTH - 20;
        hdr.ipv4.total_len = VALUES_LENGTH;
        meta.right_length = VALUES_LENGTH;
    }

    apply {
        if (hdr.aggregation.isValid()) {
            // A narrow contribution of a wrong length stays as it is, and Aggregation refuses it.
            if (hdr.narrow.isValid() && hdr.ipv4.total_len == NARROW_LENGTH
                && hdr.udp.len + 20 == hdr.ipv4.total_len) {
                widen();
            }
            sender.apply(hdr, meta, standard_metadata);
            aggregation.apply(hdr, meta, standard_metadata);
            sums.apply(hdr, meta);
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
    }
}

V1Switch(SwitchmlParser(), VerifyChecksums(), SwitchmlIngress(), SwitchmlEgress(),
         ComputeChecksums(), SwitchmlDeparser()) main;
