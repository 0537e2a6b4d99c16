// What P4Runtime keeps beside plain entries: action profiles, meters, digests, value sets, idle timeouts.
#include <core.p4>
#include <v1model.p4>

header h_t { bit<8> a; bit<8> b; int<16> c; }
struct headers_t { h_t h; }
struct metadata_t { bit<2> colour; bit<8> x; }
struct pair_t { bit<8> first; bit<8> second; }
struct inner_t { int<16> c; bool odd; }
struct learn_t { bit<8> a; inner_t inner; }

parser P(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t sm) {
    @name("known") value_set<pair_t>(2) known;
    state start {
        packet.extract(hdr.h);
        transition select(hdr.h.a, hdr.h.b) {
            known: found;
            default: accept;
        }
    }
    state found {
        meta.x = 1;
        transition accept;
    }
}

control V(inout headers_t hdr, inout metadata_t meta) { apply { } }
control C(inout headers_t hdr, inout metadata_t meta) { apply { } }
control E(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t sm) { apply { } }
control D(packet_out packet, in headers_t hdr) { apply { packet.emit(hdr.h); } }

control I(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t sm) {
    action set(bit<8> b, bit<9> port) { hdr.h.b = b; sm.egress_spec = port; }
    action mark() { hdr.h.c = -2; sm.egress_spec = 2; }
    @max_group_size(3)
    action_selector(HashAlgorithm.identity, 64, 16) chooser;
    action_profile(32) profile;
    meter(4, MeterType.packets) cells;
    direct_meter<bit<2>>(MeterType.packets) own;
    action paint() { own.read(meta.colour); }
    table balanced {
        key = { hdr.h.a : exact; hdr.h.b : selector; }
        actions = { set; mark; }
        implementation = chooser;
    }
    table shared {
        key = { hdr.h.a : exact; }
        actions = { set; mark; }
        implementation = profile;
    }
    table metered {
        key = { hdr.h.a : exact; }
        actions = { paint; NoAction; }
        meters = own;
        support_timeout = true;
    }
    apply {
        bit<32> colour = 7;
        cells.execute_meter((bit<32>)hdr.h.b, colour);
        metered.apply();
        if (hdr.h.c == 1) {
            hdr.h.a = (bit<8>)colour;
            hdr.h.b = (bit<8>)meta.colour;
        } else if (!balanced.apply().hit) {
            shared.apply();
        }
        if (hdr.h.c < -5) {
            digest<learn_t>(1, { hdr.h.a, { hdr.h.c, meta.x == 1 } });
        }
        if (meta.x == 1) {
            sm.egress_spec = 99;
        }
    }
}

V1Switch(P(), V(), I(), E(), C(), D()) main;
