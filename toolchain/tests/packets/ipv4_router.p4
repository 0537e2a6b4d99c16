// An IPv4 router: header checksum verified and updated, ttl, a longest-prefix table, bad packets dropped.
#include <core.p4>
#include <v1model.p4>

header ethernet_t { bit<48> dst; bit<48> src; bit<16> kind; }
header ipv4_t {
    bit<4> version; bit<4> ihl; bit<8> tos; bit<16> total_len; bit<16> id; bit<3> flags;
    bit<13> offset; bit<8> ttl; bit<8> protocol; bit<16> checksum; bit<32> src; bit<32> dst;
}
struct headers_t { ethernet_t eth; ipv4_t ip; }
struct meta_t { }
parser Parse(packet_in p, out headers_t h, inout meta_t m, inout standard_metadata_t s) {
    state start {
        p.extract(h.eth);
        transition select(h.eth.kind) { 0x0800: ipv4; default: accept; }
    }
    state ipv4 { p.extract(h.ip); transition accept; }
}
control Check(inout headers_t h, inout meta_t m) {
    apply {
        verify_checksum(h.ip.isValid(),
            { h.ip.version, h.ip.ihl, h.ip.tos, h.ip.total_len, h.ip.id, h.ip.flags, h.ip.offset,
              h.ip.ttl, h.ip.protocol, h.ip.src, h.ip.dst }, h.ip.checksum, HashAlgorithm.csum16);
    }
}
control Sum(inout headers_t h, inout meta_t m) {
    apply {
        update_checksum(h.ip.isValid(),
            { h.ip.version, h.ip.ihl, h.ip.tos, h.ip.total_len, h.ip.id, h.ip.flags, h.ip.offset,
              h.ip.ttl, h.ip.protocol, h.ip.src, h.ip.dst }, h.ip.checksum, HashAlgorithm.csum16);
    }
}
#include "include/rest.p4"

control Work(inout headers_t h, inout meta_t m, inout standard_metadata_t s) {
    action drop() { mark_to_drop(s); }
    action forward(bit<48> mac, bit<9> port) {
        h.eth.src = h.eth.dst;
        h.eth.dst = mac;
        h.ip.ttl = h.ip.ttl - 1;
        s.egress_spec = port;
    }
    table routes {
        key = { h.ip.dst: lpm; }
        actions = { forward; drop; }
        const default_action = drop();
    }
    apply {
        if (h.ip.isValid() && s.checksum_error == 0 && h.ip.ttl > 1) {
            routes.apply();
        } else {
            drop();
        }
    }
}
V1Switch(Parse(), Check(), Work(), NoEgress(), Sum(), Emit()) main;
