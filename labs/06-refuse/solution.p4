// Lab 06: the switch refuses packets that are old, wrong or from strangers.
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

const bit<8> CONTRIBUTION = 1;  // a worker's numbers
const bit<8> RESULT       = 2;  // the sum, which a switch sends

header course_t {
    bit<8>  kind;    // 1: a worker's numbers, 2: the result
    bit<8>  worker;  // for people who read packets
    bit<16> slot;
    bit<32> tag;
    bit<32> v0; bit<32> v1; bit<32> v2; bit<32> v3;
}

struct headers_t { ethernet_t ethernet; ipv4_t ipv4; udp_t udp; course_t course; }

const bit<32> SLOTS = 4;
const bit<32> CELLS = 2 * SLOTS;  // two sets for each slot

struct metadata_t {
    bit<32> cell;       // a slot's set
    bit<8>  me;         // the sender's bit: 1, 2, 4, 8...
    bit<8>  everybody;  // the bits of all workers
    bool    is_new;     // the first packet of a chunk
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
    counter(1, CounterType.packets) refused;
    register<bit<32>>(CELLS) tags;  // which chunk the cell sums
    register<bit<8>>(CELLS)  seen;  // a bit for each worker that is in the sum
    register<bit<32>>(CELLS) sum0;
    register<bit<32>>(CELLS) sum1;
    register<bit<32>>(CELLS) sum2;
    register<bit<32>>(CELLS) sum3;

    // Agglab fills this table. Each worker's port has the worker's number (0, 1, 2...), and how
    // many workers there are.
    action from_worker(bit<8> number, bit<8> workers) {
        meta.me = (bit<8>)1 << number;
        meta.everybody = ((bit<8>)1 << workers) - 1;
    }

    table workers {
        key = { standard_metadata.ingress_port: exact; }
        actions = { from_worker; NoAction; }
        default_action = NoAction();
    }

    // Adds the packet's numbers to the cell's, or begins a new sum with them. After that, the
    // packet has the sum so far.
    action add_numbers() {
        bit<32> so_far;
        sum0.read(so_far, meta.cell);
        hdr.course.v0 = hdr.course.v0 + (meta.is_new ? 0 : so_far);
        sum0.write(meta.cell, hdr.course.v0);
        sum1.read(so_far, meta.cell);
        hdr.course.v1 = hdr.course.v1 + (meta.is_new ? 0 : so_far);
        sum1.write(meta.cell, hdr.course.v1);
        sum2.read(so_far, meta.cell);
        hdr.course.v2 = hdr.course.v2 + (meta.is_new ? 0 : so_far);
        sum2.write(meta.cell, hdr.course.v2);
        sum3.read(so_far, meta.cell);
        hdr.course.v3 = hdr.course.v3 + (meta.is_new ? 0 : so_far);
        sum3.write(meta.cell, hdr.course.v3);
    }

    // Drops and counts a packet that no worker can have sent now.
    action refuse() {
        refused.count(0);
        mark_to_drop(standard_metadata);
    }

    action answer_all() {
        hdr.course.kind = RESULT;
        standard_metadata.mcast_grp = 1;  // group 1: the ports of all workers
    }

    // The packet's sender did not get the result, so the switch sends it again to this worker.
    action answer_one() {
        sum0.read(hdr.course.v0, meta.cell);
        sum1.read(hdr.course.v1, meta.cell);
        sum2.read(hdr.course.v2, meta.cell);
        sum3.read(hdr.course.v3, meta.cell);
        hdr.course.kind = RESULT;
        standard_metadata.egress_spec = standard_metadata.ingress_port;
    }

    apply {
        if (!hdr.course.isValid()) {
            mark_to_drop(standard_metadata);
            return;
        }
        if (!workers.apply().hit || hdr.course.kind != CONTRIBUTION
            || (bit<32>)hdr.course.slot >= SLOTS) {
            refuse();
            return;
        }
        meta.cell = (bit<32>)hdr.course.slot * 2 + (hdr.course.tag & 1);
        bit<32> tag;
        bit<8> before;
        tags.read(tag, meta.cell);
        seen.read(before, meta.cell);
        if (hdr.course.tag < tag) {
            mark_to_drop(standard_metadata);  // old: the cell has a newer chunk by now
            return;
        }
        meta.is_new = hdr.course.tag != tag || before == 0;
        if (meta.is_new) {
            before = 0;  // nobody is in the new sum
            tags.write(meta.cell, hdr.course.tag);
        }
        if ((before & meta.me) != 0) {
            if (before == meta.everybody) {
                answer_one();
            } else {
                mark_to_drop(standard_metadata);  // its numbers are in the sum; others are missing
            }
            return;
        }
        bit<8> after = before | meta.me;
        seen.write(meta.cell, after);
        add_numbers();
        if (after == meta.everybody) {
            answer_all();
        } else {
            mark_to_drop(standard_metadata);
        }
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
