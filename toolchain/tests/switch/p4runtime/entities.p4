// One of everything that P4Runtime writes and reads. entities.json and entities.p4info.txtpb are its compiled form
// (p4c-bm2-ss --p4v 16 --p4runtime-files entities.p4info.txtpb -o entities.json entities.p4).
#include <core.p4>
#include <v1model.p4>

const bit<9> CPU_PORT = 255;

@controller_header("packet_in")
header packet_in_t {
    bit<9>  ingress_port;
    bit<7>  reason;
    bit<16> cookie;
}

@controller_header("packet_out")
header packet_out_t {
    bit<9> egress_port;
    bit<7> padding;
}

header ethernet_t {
    bit<48> dst;
    bit<48> src;
    bit<16> ethertype;
}

struct headers_t {
    packet_in_t  packet_in;
    packet_out_t packet_out;
    ethernet_t   ethernet;
}

struct metadata_t {
    bit<12> tag;
}

parser P(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t sm) {
    state start {
        transition select(sm.ingress_port) {
            CPU_PORT: from_controller;
            default: ethernet;
        }
    }
    state from_controller {
        packet.extract(hdr.packet_out);
        transition ethernet;
    }
    state ethernet {
        packet.extract(hdr.ethernet);
        transition accept;
    }
}

control NoChecksum(inout headers_t hdr, inout metadata_t meta) { apply { } }

control I(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t sm) {
    register<bit<12>>(8) cells;
    register<int<16>>(4) levels;
    counter(4, CounterType.packets_and_bytes) ports;
    direct_counter(CounterType.packets_and_bytes) hits;

    action drop() { mark_to_drop(sm); }
    action forward(bit<9> port) { sm.egress_spec = port; }
    action multicast(bit<16> group) { sm.mcast_grp = group; }
    action punt(bit<7> reason) {
        sm.egress_spec = CPU_PORT;
        hdr.packet_in.setValid();
        hdr.packet_in.ingress_port = sm.ingress_port;
        hdr.packet_in.reason = reason;
        hdr.packet_in.cookie = 0xbeef;
    }
    action remember(bit<12> value, bit<3> cell) {
        cells.write((bit<32>)cell, value);
        sm.egress_spec = sm.ingress_port;
    }
    action copy(bit<9> port) {
        clone(CloneType.I2E, 5);
        sm.egress_spec = port;
    }

    table exact_table {
        key = { hdr.ethernet.dst: exact @name("dst"); sm.ingress_port: exact @name("port"); }
        actions = { forward; multicast; @tableonly remember; copy; @defaultonly punt; drop; }
        default_action = punt(3);
        counters = hits;
        size = 4;
    }
    table lpm_table {
        key = { hdr.ethernet.src: lpm @name("src"); }
        actions = { forward; drop; NoAction; }
        size = 16;
    }
    table ternary_table {
        key = { hdr.ethernet.ethertype: ternary @name("type"); sm.ingress_port: exact @name("port"); }
        actions = { drop; NoAction; }
        const default_action = NoAction();
        size = 16;
    }
    table range_table {
        key = { hdr.ethernet.ethertype: range @name("type"); sm.ingress_port: optional @name("port"); }
        actions = { drop; NoAction; }
        size = 16;
    }
    table const_table {
        key = { hdr.ethernet.ethertype: exact @name("type"); }
        actions = { drop; NoAction; }
        const entries = { 0x1234: drop(); 0x5678: NoAction(); }
    }
    table initial_table {
        key = { hdr.ethernet.ethertype: ternary @name("type"); }
        actions = { drop; NoAction; }
        entries = {
            const 0x1200 &&& 0xff00: drop();
            0x1000 &&& 0xf000: NoAction();
            const 0x0002 &&& 0x000f: drop();
        }
        size = 16;
    }
    table keyless {
        actions = { drop; NoAction; }
        default_action = NoAction();
    }

    apply {
        if (hdr.packet_out.isValid()) {
            sm.egress_spec = hdr.packet_out.egress_port;
            hdr.packet_out.setInvalid();
            return;
        }
        ports.count((bit<32>)(sm.ingress_port & 3));
        levels.write(1, (int<16>)-2);
        exact_table.apply();
        lpm_table.apply();
        ternary_table.apply();
        range_table.apply();
        const_table.apply();
        initial_table.apply();
        keyless.apply();
    }
}

control E(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t sm) { apply { } }

control D(packet_out packet, in headers_t hdr) {
    apply {
        packet.emit(hdr.packet_in);
        packet.emit(hdr.ethernet);
    }
}

V1Switch(P(), NoChecksum(), I(), E(), NoChecksum(), D()) main;
