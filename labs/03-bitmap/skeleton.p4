// Lab 03: a bitmap notes who is in the sum, so that no packet counts twice.
#include <core.p4>
#include <v1model.p4>

header ethernet_t { bit<48> dst; bit<48> src; bit<16> type; }

header ipv4_t {
    bit<8> version_and_length; bit<8> service; bit<16> total_length;
    bit<16> id; bit<16> fragment;
    bit<8> ttl; bit<8> protocol; bit<16> checksum;
    bit<32> src;
    bit<32> dst;
}

header udp_t { bit<16> src_port; bit<16> dst_port; bit<16> length; bit<16> checksum; }

const bit<8> RESULT = 2;  // the kind of the packets that the switch sends

header course_t {
    bit<8>  kind;    // 1: a worker's numbers, 2: the result
    bit<8>  worker;  // for people who read packets
    bit<16> slot;
    bit<32> tag;
    bit<32> v0; bit<32> v1; bit<32> v2; bit<32> v3;
}

struct headers_t { ethernet_t ethernet; ipv4_t ipv4; udp_t udp; course_t course; }

const bit<32> SLOTS = 128;  // chunks that the memory has room for

struct metadata_t {
    bit<32> cell;       // the packet's slot
    bit<8>  me;         // the sender's bit: 1, 2, 4, 8...
    bit<8>  everybody;  // the bits of all workers
}

parser MyParser(packet_in packet, out headers_t hdr, inout metadata_t meta,
                inout standard_metadata_t standard_metadata) {
    state start {
        packet.extract(hdr.ethernet);
        transition select(hdr.ethernet.type) { 0x0800: parse_ipv4; default: accept; }
    }
    state parse_ipv4 {
        packet.extract(hdr.ipv4);
        transition select(hdr.ipv4.protocol) { 17: parse_udp; default: accept; }
    }
    state parse_udp {
        packet.extract(hdr.udp);
        transition select(hdr.udp.dst_port) { 48864: parse_course; default: accept; }
    }
    state parse_course {
        packet.extract(hdr.course);
        transition accept;
    }
}

control MyVerifyChecksum(inout headers_t hdr, inout metadata_t meta) { apply { } }

control MyIngress(inout headers_t hdr, inout metadata_t meta,
                  inout standard_metadata_t standard_metadata) {
    register<bit<8>>(SLOTS)  seen;  // a bit for each worker that is in the sum
    register<bit<32>>(SLOTS) sum0;
    register<bit<32>>(SLOTS) sum1;
    register<bit<32>>(SLOTS) sum2;
    register<bit<32>>(SLOTS) sum3;

    // Agglab fills this table. Each worker's port has the worker's number (0, 1, 2...), and how
    // many workers there are.
    action from_worker(bit<8> number, bit<8> workers) {
        // TODO 1: give each worker a bit of its own: 1 for worker 0, 2 for worker 1, 4 for worker
        // 2 and so on. All bits together, for three workers, are 7.
        meta.me = 0;
        meta.everybody = 0;
    }

    table workers {
        key = { standard_metadata.ingress_port: exact; }
        actions = { from_worker; NoAction; }
        default_action = NoAction();
    }

    // Adds the packet's numbers to the slot's. After that, the packet has the sum so far.
    action add_numbers() {
        bit<32> so_far;
        sum0.read(so_far, meta.cell);
        hdr.course.v0 = hdr.course.v0 + so_far;
        sum0.write(meta.cell, hdr.course.v0);
        sum1.read(so_far, meta.cell);
        hdr.course.v1 = hdr.course.v1 + so_far;
        sum1.write(meta.cell, hdr.course.v1);
        sum2.read(so_far, meta.cell);
        hdr.course.v2 = hdr.course.v2 + so_far;
        sum2.write(meta.cell, hdr.course.v2);
        sum3.read(so_far, meta.cell);
        hdr.course.v3 = hdr.course.v3 + so_far;
        sum3.write(meta.cell, hdr.course.v3);
    }

    action answer_all() {
        hdr.course.kind = RESULT;
        standard_metadata.mcast_grp = 1;  // group 1: the ports of all workers
    }

    apply {
        if (!hdr.course.isValid()) {
            mark_to_drop(standard_metadata);
            return;
        }
        workers.apply();
        meta.cell = (bit<32>)hdr.course.slot;
        // TODO 2: read the slot's bits from `seen`. If the sender's bit is set, drop the packet and
        // return: its numbers are already in the sum.
        // TODO 3: set the sender's bit and write the bits back.
        add_numbers();
        // TODO 4: answer all workers if all bits are set now, and drop the packet if not.
        mark_to_drop(standard_metadata);
    }
}

// Addresses each copy of a packet to the host or switch at the port by which it leaves.
control MyEgress(inout headers_t hdr, inout metadata_t meta,
                 inout standard_metadata_t standard_metadata) {
    action send_to(bit<48> mac, bit<32> ip) {
        hdr.ethernet.dst = mac;
        hdr.ethernet.src = 0x02000000fffe;  // this switch
        hdr.ipv4.dst = ip;
        hdr.ipv4.src = 0x0a00fffe;  // this switch: 10.0.255.254
        hdr.udp.checksum = 0;  // none
    }

    // Agglab fills this table too.
    table receivers {
        key = { standard_metadata.egress_port: exact; }
        actions = { send_to; NoAction; }
        default_action = NoAction();
    }

    apply { receivers.apply(); }
}

control MyComputeChecksum(inout headers_t hdr, inout metadata_t meta) {
    apply {
        update_checksum(hdr.ipv4.isValid(),
            { hdr.ipv4.version_and_length, hdr.ipv4.service, hdr.ipv4.total_length, hdr.ipv4.id,
              hdr.ipv4.fragment, hdr.ipv4.ttl, hdr.ipv4.protocol, hdr.ipv4.src, hdr.ipv4.dst },
            hdr.ipv4.checksum, HashAlgorithm.csum16);
    }
}

control MyDeparser(packet_out packet, in headers_t hdr) {
    apply { packet.emit(hdr); }
}

V1Switch(MyParser(), MyVerifyChecksum(), MyIngress(), MyEgress(), MyComputeChecksum(),
         MyDeparser()) main;
