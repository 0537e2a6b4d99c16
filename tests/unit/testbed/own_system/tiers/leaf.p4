// A rack's switch: what its workers push to a server is summed on the way if the chunk is hot, and forwarded if not.
#include <core.p4>
#include <v1model.p4>

#include "include/lower_headers.p4"

const bit<8>  PROTOCOL_UDP = 17;
const bit<16> SERVER_PORT  = 51000;  // and 51001
const bit<8>  PUSH         = 3;
#define CELLS 256

header udp_t { bit<16> src_port; bit<16> dst_port; bit<16> len; bit<16> checksum; }

header part_t {
    bit<8>  kind;
    bit<8>  count;  // workers whose values are in it
    bit<16> round;
    bit<32> chunk;
}

header values_t { bit<32> v0; bit<32> v1; bit<32> v2; bit<32> v3; }

struct headers_t {
    ethernet_t      ethernet;
    tag_t[MAX_TAGS] tags;
    ipv4_h          ipv4;
    ipv6_h          ipv6;
    udp_t           udp;
    part_t          part;
    values_t        values;
}

struct metadata_t {
    bool rewritten;
    bool waits;  // for other workers
}

#include "include/lower_layers.p4"
#include "include/forwarding.p4"

parser LeafParser(packet_in packet, out headers_t hdr, inout metadata_t meta,
                  inout standard_metadata_t standard_metadata) {
    LowerLayers() lower_layers;

    state start {
        lower_layers.apply(packet, hdr);
        transition select(hdr.ethernet.ethertype, hdr.ipv4.protocol, hdr.ipv4.ihl) {
            (ETHERTYPE_IPV4, PROTOCOL_UDP, 5): parse_udp;
            default: accept;
        }
    }

    state parse_udp {
        packet.extract(hdr.udp);
        transition select(hdr.udp.dst_port) {
            SERVER_PORT &&& 0xfffe: parse_part;
            default: accept;
        }
    }

    state parse_part {
        packet.extract(hdr.part);
        transition select(hdr.part.kind) {
            PUSH: parse_values;
            default: accept;
        }
    }

    state parse_values {
        packet.extract(hdr.values);
        transition accept;
    }
}

control LeafChecksum(inout headers_t hdr, inout metadata_t meta) {
    apply { }
}

control LeafIngress(inout headers_t hdr, inout metadata_t meta,
                    inout standard_metadata_t standard_metadata) {
    Forwarding() forwarding;
    register<bit<8>>(CELLS)  counts;
    register<bit<32>>(CELLS) s0;
    register<bit<32>>(CELLS) s1;
    register<bit<32>>(CELLS) s2;
    register<bit<32>>(CELLS) s3;
    counter(1, CounterType.packets_and_bytes) summed;

#define ADD(register, value) \
        bit<32> value##_so_far; \
        register.read(value##_so_far, cell); \
        hdr.values.value = hdr.values.value + value##_so_far; \
        register.write(cell, meta.waits ? hdr.values.value : 0);
    action add(bit<32> cell, bit<8> workers) {
        bit<8> before;
        counts.read(before, cell);
        hdr.part.count = hdr.part.count + before;
        meta.waits = hdr.part.count < workers;
        counts.write(cell, meta.waits ? hdr.part.count : 0);
        ADD(s0, v0)
        ADD(s1, v1)
        ADD(s2, v2)
        ADD(s3, v3)
        hdr.udp.checksum = 0;
        summed.count(0);
    }

    table hot {
        key = { standard_metadata.ingress_port: exact; hdr.part.chunk: exact; }
        actions = { add; NoAction; }
        default_action = NoAction();
        size = 4096;
    }

    apply {
        if (hdr.values.isValid()) {
            hot.apply();
        }
        if (meta.waits) {
            mark_to_drop(standard_metadata);
        } else {
            forwarding.apply(hdr, meta, standard_metadata);
        }
    }
}

control LeafEgress(inout headers_t hdr, inout metadata_t meta,
                   inout standard_metadata_t standard_metadata) {
    apply { }
}

control LeafDeparser(packet_out packet, in headers_t hdr) {
    apply {
        packet.emit(hdr.ethernet);
        packet.emit(hdr.tags);
        packet.emit(hdr.ipv4);
        packet.emit(hdr.ipv6);
        packet.emit(hdr.udp);
        packet.emit(hdr.part);
        packet.emit(hdr.values);
    }
}

V1Switch(LeafParser(), LeafChecksum(), LeafIngress(), LeafEgress(), LeafChecksum(), LeafDeparser()) main;
