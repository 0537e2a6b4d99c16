// SwitchML-style aggregation (docs/protocol.md): a pool of slots, each with two sets, sums one chunk per slot over the
// children of this switch in a job: workers, or switches below. A switch with a parent sends its partial sum up and
// hands the final sum down. Compile-time parameters: LANES (32-bit values a packet carries), SLOTS (slots of all jobs).
//
// The steps of ingress are controls in include/, because other programs take them too: switchml_narrow.p4 (integers of
// fewer bits), switchml_float16.p4 and switchml_bfloat16.p4 (floats of 16 bits), and switchml_deadline.p4 (sums that do
// not wait for everybody).
//
// BMv2 locks registers for one action at a time and ignores @atomic, so all aggregation state lives in ingress and each
// register is read, changed and written within one action.
#include <core.p4>
#include <v1model.p4>

#include "include/headers.p4"

struct headers_t {
    ethernet_t      ethernet;
    tag_t[MAX_TAGS] tags;
    ipv4_h          ipv4;
    ipv6_h          ipv6;
    udp_t           udp;
    aggregation_t   aggregation;  // says which chunk of which job this is
    opening_t       opening;      // before a round: what each worker is about to reduce
    values_t        values;       // in a round: the chunk
}

#define UDP_CHECKED { HEADERS_CHECKED, BODY_CHECKED }

#define SETS 2  // a worker may be one chunk ahead of another that still lacks the result

#include "include/metadata.p4"
#include "include/udp_layers.p4"
#include "include/forwarding.p4"
#include "include/checksums.p4"
#include "include/sender.p4"
#include "include/aggregation.p4"
#include "include/sums.p4"
#include "include/switchml_egress.p4"

// Finds the packets of this protocol. Of these, parser and checksums only say what is wrong; Aggregation refuses them.
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

    // A packet of an unknown kind has no body, and no length is right for it.
    state parse_aggregation {
        packet.extract(hdr.aggregation);
        transition select(hdr.aggregation.kind) {
            OPENING: parse_opening;
            OPENING | RESULT: parse_opening;
            INT32: parse_values;
            SCALED: parse_values;
            INT32 | RESULT: parse_values;
            SCALED | RESULT: parse_values;
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
}

control SwitchmlIngress(inout headers_t hdr, inout metadata_t meta,
                        inout standard_metadata_t standard_metadata) {
    Sender() sender;
    Aggregation() aggregation;
    Sums() sums;
    Forwarding() forwarding;

    apply {
        if (hdr.aggregation.isValid()) {
            // Which job is it, which of its children sent it, and which cell holds the chunk?
            sender.apply(hdr, meta, standard_metadata);
            // Is the packet in order, has this child contributed before, and who gets an answer?
            aggregation.apply(hdr, meta, standard_metadata);
            // Add the packet's values to those of the cell, and give it the sum.
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
