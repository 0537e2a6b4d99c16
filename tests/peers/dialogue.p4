// Everything that P4Runtime can be asked for; `kind` of a packet-out says what is done with it. All packets
// go back to the CPU port.
#include <core.p4>
#include <v1model.p4>

const bit<9> CPU_PORT = 255;

@controller_header("packet_out") header packet_out_t { bit<9> egress_port; bit<7> padding; }
@controller_header("packet_in") header packet_in_t { bit<9> ingress_port; bit<7> padding; }
header h_t { bit<8> kind; bit<8> a; bit<16> b; bit<32> c; bit<12> d; bit<4> e; }
struct headers_t { packet_out_t packet_out; packet_in_t packet_in; h_t h; }
struct metadata_t { bit<2> colour; bit<8> set; }
struct learn_t { bit<8> a; bit<16> b; }

parser P(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t sm) {
    state start {
        packet.extract(hdr.packet_out);
        packet.extract(hdr.h);
        transition accept;
    }
}

control V(inout headers_t hdr, inout metadata_t meta) { apply { } }
control C(inout headers_t hdr, inout metadata_t meta) { apply { } }

control I(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t sm) {
    action set(bit<8> a, bit<12> d) { hdr.h.a = a; hdr.h.d = d; }
    action keep() { }
    action only_default() { hdr.h.a = 0xdd; }
    action only_entries() { hdr.h.a = 0xee; }

    direct_counter(CounterType.packets_and_bytes) exact_hits;
    direct_counter(CounterType.packets) lpm_hits;
    direct_meter<bit<2>>(MeterType.packets) own_meter;
    counter(4, CounterType.packets_and_bytes) both;
    counter(3, CounterType.packets) packets;
    counter(2, CounterType.bytes) bytes;
    meter(4, MeterType.packets) packet_meters;
    meter(2, MeterType.bytes) byte_meters;
    register<bit<32>>(4) cells;
    @max_group_size(4)
    action_selector(HashAlgorithm.identity, 64, 16) choice;
    action_profile(4) profile;
    action paint() { own_meter.read(meta.colour); }
    action paint_set(bit<8> a) { own_meter.read(meta.colour); hdr.h.a = a; }

    table exact_table {
        key = { hdr.h.a : exact @name("a"); hdr.h.d : exact @name("d"); }
        actions = { set; keep; @defaultonly only_default; @tableonly only_entries; }
        counters = exact_hits;
        size = 8;
        default_action = keep();
    }
    table lpm_table {
        key = { hdr.h.c : lpm @name("c"); }
        actions = { set; keep; }
        counters = lpm_hits;
        const default_action = set(0x77, 0x777);
    }
    table ternary_table {
        key = { hdr.h.c : ternary @name("c"); hdr.h.b : range @name("b"); hdr.h.a : optional @name("a"); hdr.h.e : exact @name("e"); }
        actions = { set; keep; }
    }
    table mixed_table {
        key = { hdr.h.a : ternary @name("a"); hdr.h.c : lpm @name("c"); }
        actions = { set; keep; }
    }
    table selected {
        key = { hdr.h.a : exact @name("a"); hdr.h.b : selector; }
        actions = { set; keep; }
        implementation = choice;
    }
    table profiled {
        key = { hdr.h.a : exact @name("a"); }
        actions = { set; keep; }
        implementation = profile;
    }
    table metered {
        key = { hdr.h.a : exact @name("a"); }
        actions = { paint; paint_set; keep; }
        meters = own_meter;
    }
    table idle {
        key = { hdr.h.a : exact @name("a"); }
        actions = { set; keep; }
        support_timeout = true;
    }
    table fixed {
        key = { hdr.h.a : exact @name("a"); }
        actions = { set; keep; }
        const entries = { 1 : set(0x21, 0x321); 2 : keep(); }
    }
    table keyless {
        actions = { set; keep; }
        default_action = keep();
    }

    apply {
        hdr.packet_in.setValid();
        hdr.packet_in.ingress_port = sm.ingress_port;
        hdr.packet_in.padding = 0;
        hdr.packet_out.setInvalid();
        sm.egress_spec = CPU_PORT;
        if (hdr.h.kind == 1) { exact_table.apply(); }
        else if (hdr.h.kind == 2) { lpm_table.apply(); }
        else if (hdr.h.kind == 3) { ternary_table.apply(); }
        else if (hdr.h.kind == 4) { selected.apply(); }
        else if (hdr.h.kind == 5) { profiled.apply(); }
        else if (hdr.h.kind == 6) { bit<32> colour = 9; packet_meters.execute_meter((bit<32>)hdr.h.b, colour); hdr.h.c = colour; }
        else if (hdr.h.kind == 7) { bit<32> colour = 9; byte_meters.execute_meter((bit<32>)hdr.h.b, colour); hdr.h.c = colour; }
        else if (hdr.h.kind == 8) { meta.colour = 3; metered.apply(); hdr.h.b = (bit<16>)meta.colour; }
        else if (hdr.h.kind == 9) {
            both.count((bit<32>)hdr.h.b);
            packets.count((bit<32>)hdr.h.b);
            bytes.count((bit<32>)hdr.h.b);
        }
        else if (hdr.h.kind == 10) { digest<learn_t>(1, { hdr.h.a, hdr.h.b }); }
        else if (hdr.h.kind == 11) { sm.mcast_grp = hdr.h.b; }
        else if (hdr.h.kind == 12) { clone(CloneType.I2E, (bit<32>)hdr.h.b); }
        else if (hdr.h.kind == 13) { idle.apply(); }
        else if (hdr.h.kind == 14) { fixed.apply(); }
        else if (hdr.h.kind == 15) { keyless.apply(); }
        else if (hdr.h.kind == 16) { mixed_table.apply(); }
        else if (hdr.h.kind == 17) { cells.write((bit<32>)hdr.h.b, hdr.h.c); }
        else if (hdr.h.kind == 18) { mark_to_drop(sm); }
    }
}

control E(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t sm) {
    apply {
        if (hdr.packet_out.isValid()) {
            hdr.packet_out.setInvalid();
            hdr.packet_in.setValid();
            hdr.packet_in.ingress_port = sm.ingress_port;
            hdr.packet_in.padding = 0;
        }
        if (sm.instance_type != 0) {
            hdr.h.a = (bit<8>)sm.instance_type;
            hdr.h.b = sm.egress_rid;
        }
    }
}

control D(packet_out packet, in headers_t hdr) {
    apply {
        packet.emit(hdr.packet_in);
        packet.emit(hdr.h);
    }
}

V1Switch(P(), V(), I(), E(), C(), D()) main;
