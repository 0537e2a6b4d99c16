// A router: nested controls, lpm, an action profile's absence, checksum update, direct counter.
#include <core.p4>
#include <v1model.p4>

header ethernet_t { bit<48> dst; bit<48> src; bit<16> type; }
header ipv4_t {
    bit<4> version; bit<4> ihl; bit<8> tos; bit<16> total_len; bit<16> id; bit<16> fragment;
    bit<8> ttl; bit<8> protocol; bit<16> checksum; bit<32> src; bit<32> dst;
}
struct headers_t { ethernet_t ethernet; ipv4_t ipv4; }
struct metadata_t { bit<16> hop; }

parser ParserImpl(packet_in packet, out headers_t hdr, inout metadata_t meta,
                  inout standard_metadata_t std) {
    state start {
        packet.extract(hdr.ethernet);
        transition select(hdr.ethernet.type) { 0x800: ipv4; default: accept; }
    }
    state ipv4 { packet.extract(hdr.ipv4); transition accept; }
}
control VerifyImpl(inout headers_t hdr, inout metadata_t meta) { apply { } }

control Hops(inout headers_t hdr, in bit<16> hop, inout standard_metadata_t std) {
    action to(bit<9> port, bit<48> mac) { std.egress_spec = port; hdr.ethernet.dst = mac; }
    action drop() { mark_to_drop(std); }
    table hops { key = { hop: exact @name("hop"); } actions = { to; drop; } default_action = drop(); }
    apply { hops.apply(); }
}
control IngressImpl(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    direct_counter(CounterType.packets_and_bytes) routed;
    Hops() next;
    action route(bit<16> hop) { meta.hop = hop; hdr.ipv4.ttl = hdr.ipv4.ttl - 1; }
    table routes {
        key = { hdr.ipv4.dst: lpm; }
        actions = { route; NoAction; }
        size = 4096;
        counters = routed;
    }
    apply {
        if (hdr.ipv4.isValid() && hdr.ipv4.ttl > 1) {
            if (routes.apply().hit) { next.apply(hdr, meta.hop, std); }
        }
    }
}
control EgressImpl(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    apply { }
}
control ComputeImpl(inout headers_t hdr, inout metadata_t meta) {
    apply {
        update_checksum(hdr.ipv4.isValid(), { hdr.ipv4.version, hdr.ipv4.ihl, hdr.ipv4.tos,
            hdr.ipv4.total_len, hdr.ipv4.id, hdr.ipv4.fragment, hdr.ipv4.ttl, hdr.ipv4.protocol,
            hdr.ipv4.src, hdr.ipv4.dst }, hdr.ipv4.checksum, HashAlgorithm.csum16);
    }
}
control DeparserImpl(packet_out packet, in headers_t hdr) { apply { packet.emit(hdr); } }

V1Switch(ParserImpl(), VerifyImpl(), IngressImpl(), EgressImpl(), ComputeImpl(),
         DeparserImpl()) main;
