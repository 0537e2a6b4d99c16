// SwitchML-style aggregation (docs/protocol.md): a pool of slots, each with two sets, sums one chunk per slot over the
// children of this switch in a job: workers, or switches below. A switch with a parent sends its partial sum up and
// hands the final sum down. Compile-time parameters: LANES (32-bit values a packet carries), SLOTS (slots of all jobs),
// FLOAT16 or BFLOAT16 (defined: sums floats of 16 bits too, two per lane), WIRE_BITS (defined: takes contributions of
// so many bits per value), DEADLINE and SETS (include/presence.p4; defined: a chunk waits for late workers only for
// this time).
//
// BMv2 locks registers for one action at a time and ignores @atomic, so all aggregation state lives in ingress and each
// register is read, changed and written within one action.
#include <core.p4>
#include <v1model.p4>

#if defined(FLOAT16) || defined(BFLOAT16)
#define HALVES
#include "include/lanes.p4"
#include "include/half.p4"
#endif
#ifdef WIRE_BITS
#include "include/lanes.p4"
#include "include/narrow.p4"
#endif
#ifdef DEADLINE
#include "include/presence.p4"
#if defined(HALVES) || defined(WIRE_BITS)
#error "DEADLINE cannot be used together with FLOAT16, BFLOAT16 or WIRE_BITS"
#endif
#endif
#include "include/headers.p4"
#include "include/metadata.p4"
#include "include/lower_layers.p4"
#include "include/forwarding.p4"

#ifndef SLOTS
#define SLOTS 512
#endif
#if SLOTS < 1 || SLOTS > 32768
#error "SLOTS must be 1 to 32768 (a slot's two sets are indexed by 16 bits)"
#endif

#define JOBS 16
#ifdef DEADLINE
#if SETS * SLOTS > 65536
#error "SETS * SLOTS must be at most 65536"
#endif
#else
#define SETS 2
#define SET_BITS 1
#endif
#define CELLS (SETS * SLOTS)

const bit<32> NO_JOB = JOBS;  // where packets are counted that belong to no job

#ifdef DEADLINE
const bit<16> HEADERS_LENGTH = 20 + 8 + 12 + 8;
#else
const bit<16> HEADERS_LENGTH = 20 + 8 + 12;
#endif
const bit<16> OPENING_LENGTH = HEADERS_LENGTH + 2 * 18;
const bit<16> VALUES_LENGTH = HEADERS_LENGTH + 4 * LANES;
#ifdef WIRE_BITS
const bit<16> NARROW_LENGTH = HEADERS_LENGTH + 2 * LANES;
#endif

const bit<32> INSTANCE_REPLICATION = 5;
const port_t  NO_PARENT = 511;

parser SwitchmlParser(packet_in packet, out headers_t hdr, inout metadata_t meta,
                      inout standard_metadata_t standard_metadata) {
    LowerLayers() lower_layers;
#ifdef HALVES
    bit<16> quads = 0;  // how many were extracted
#endif

    state start {
        lower_layers.apply(packet, hdr);
        // Only untagged frames of type IPv4, without options or fragments.
        transition select(hdr.ethernet.ethertype, hdr.ipv4.dst, hdr.ipv4.protocol, hdr.ipv4.version,
                          hdr.ipv4.ihl, hdr.ipv4.more_fragments, hdr.ipv4.fragment_offset) {
            (ETHERTYPE_IPV4, AGGREGATOR_IPV4, PROTOCOL_UDP, 4, 5, 0, 0): parse_udp;
            default: accept;
        }
    }

    state parse_udp {
        packet.extract(hdr.udp);
        transition select(hdr.udp.dst_port) {
            AGGREGATOR_PORT: parse_aggregation;
            default: accept;
        }
    }

    state parse_aggregation {
        packet.extract(hdr.aggregation);
#ifdef DEADLINE
        packet.extract(hdr.presence);
#endif
        transition select(hdr.aggregation.kind) {
            INT32: parse_values;
            SCALED: parse_values;
            INT32 | RESULT: parse_values;
            SCALED | RESULT: parse_values;
#ifdef HALVES
            HALVES_KIND: parse_halves;
            HALVES_KIND | RESULT: parse_halves;
#endif
#ifdef WIRE_BITS
            NARROW: parse_narrow;
#endif
            OPENING: parse_opening;
            OPENING | RESULT: parse_opening;
            default: accept;
        }
    }

    state parse_opening {
        packet.extract(hdr.opening);
        transition accept;
    }

    state parse_values {
        packet.extract(hdr.values);
        transition accept;
    }

#ifdef HALVES
    state parse_halves {
        packet.extract(hdr.quads.next);
        quads = quads + 1;
        transition select(quads) {
            QUADS: accept;
            default: parse_halves;
        }
    }
#endif

#ifdef WIRE_BITS
    state parse_narrow {
        packet.extract(hdr.narrow);
        transition accept;
    }
#endif
}

control SwitchmlVerifyChecksum(inout headers_t hdr, inout metadata_t meta) {
    apply {
        verify_checksum(hdr.ipv4.isValid() && hdr.ipv4.ihl == 5,
            IPV4_CHECKED, hdr.ipv4.checksum, HashAlgorithm.csum16);
        // 0: the sender computed none. 0xffff stands for a checksum of 0 (RFC 768), for which csum16 returns 0.
        verify_checksum(hdr.aggregation.isValid() && hdr.udp.checksum != 0
                        && hdr.udp.checksum != 0xffff,
            UDP_CHECKED, hdr.udp.checksum, HashAlgorithm.csum16);
        verify_checksum(hdr.aggregation.isValid() && hdr.udp.checksum == 0xffff,
            UDP_CHECKED, meta.zero, HashAlgorithm.csum16);
    }
}

// Handles one contribution, from its fully parsed header to the decision where it goes.
control Aggregation(inout headers_t hdr, inout metadata_t meta,
                    inout standard_metadata_t standard_metadata) {
    register<bit<32>>(CELLS)   tags;
    register<bit<8>>(CELLS)    kinds;
    register<workers_t>(CELLS) contributors;
    register<bit<1>>(CELLS)    finals;
    register<bit<8>>(CELLS)    exponents;
    register<shape_t>(CELLS)   smallest_shapes;
    register<shape_t>(CELLS)   largest_shapes;
#define WORD_REGISTER(name, bits) register<bit<bits>>(CELLS) sum_##name;
    EACH_WORD(WORD_REGISTER)
#ifdef HALVES
#include "include/half_sums.p4"
#endif

    counter(JOBS + 1, CounterType.packets_and_bytes) contribution_new;
    counter(JOBS + 1, CounterType.packets_and_bytes) contribution_duplicate;
    counter(JOBS + 1, CounterType.packets_and_bytes) contribution_stale;
    counter(JOBS + 1, CounterType.packets_and_bytes) contribution_refused;
    counter(JOBS + 1, CounterType.packets_and_bytes) chunk_complete;
    counter(JOBS + 1, CounterType.packets_and_bytes) result_repeated;
    counter(JOBS + 1, CounterType.packets_and_bytes) partial_repeated;
    counter(JOBS + 1, CounterType.packets_and_bytes) final_new;
    counter(JOBS + 1, CounterType.packets_and_bytes) final_unneeded;
#ifdef DEADLINE
#include "include/deadline.p4"
#else
#define AGAIN ((meta.before & meta.worker) != 0)
#define ANSWERABLE (meta.before == meta.all_workers)
#define ENDS (meta.after == meta.all_workers)
#define COUNT_STALE contribution_stale.count(meta.job);
#define COUNT_AGAIN contribution_duplicate.count(meta.job);
#define COUNT_END chunk_complete.count(meta.job);
#endif

    action set_unknown_sender() {
        meta.job = NO_JOB;
        meta.worker = 0;
        meta.all_workers = 0;
    }

    action find_cell(bit<8> job_index, workers_t all_workers, bit<16> first_slot, bit<16> slots,
                     bit<16> group) {
        meta.job = (bit<32>)job_index;
        meta.all_workers = all_workers;
        meta.slots = slots;
        meta.group = group;
        meta.cell = ((bit<32>)first_slot + (bit<32>)hdr.aggregation.slot) << SET_BITS
                    | (hdr.aggregation.tag & (SETS - 1));
    }

    // The packet comes from a child: a worker, or a switch below with its partial sum.
    action contribute(bit<8> job_index, workers_t worker, workers_t all_workers, bit<16> first_slot,
                      bit<16> slots, bit<16> group, port_t parent) {
        find_cell(job_index, all_workers, first_slot, slots, group);
        meta.worker = worker;
        meta.parent = parent;
    }

    // The packet comes from the parent: it is a final sum.
    action conclude(bit<8> job_index, workers_t all_workers, bit<16> first_slot, bit<16> slots,
                    bit<16> group) {
        find_cell(job_index, all_workers, first_slot, slots, group);
        meta.worker = 0;
    }

    // A packet's sender is identified by the port it came in by, never by what the packet says.
    table members {
        key = {
            standard_metadata.ingress_port: exact;
            hdr.aggregation.job: exact;
        }
        actions = { contribute; conclude; set_unknown_sender; }
        const default_action = set_unknown_sender();
        size = 1024;
    }

    action refuse() {
        contribution_refused.count(meta.job);
        mark_to_drop(standard_metadata);
    }

    action record_contribution() {
        bit<32> tag;
        bit<8> kind;
        workers_t present;
        bit<1> final;
        tags.read(tag, meta.cell);
        kinds.read(kind, meta.cell);
        contributors.read(present, meta.cell);
        finals.read(final, meta.cell);
        bit<32> ahead = hdr.aggregation.tag - tag;
        bool used = present != 0;  // a cell that nobody ever contributed to has no tag to compare with
        meta.stale = used && ahead[31:31] == 1;
#ifdef DEADLINE
        meta.stale = meta.stale || held;
#endif
        meta.fresh = !used || (ahead != 0 && !meta.stale);
        meta.other_kind = !meta.fresh && !meta.stale && hdr.aggregation.kind != kind;
        meta.before = meta.fresh ? 0 : present;
        meta.after = meta.stale || meta.other_kind ? present : meta.before | meta.worker;
        tags.write(meta.cell, meta.stale ? tag : hdr.aggregation.tag);
        kinds.write(meta.cell, meta.fresh ? hdr.aggregation.kind : kind);
        contributors.write(meta.cell, meta.after);
        meta.holds_result = !meta.fresh && final == 1;
        finals.write(meta.cell, meta.holds_result || (meta.parent == NO_PARENT
                                                 && meta.after == meta.all_workers) ? 1w1 : 1w0);
#ifdef DEADLINE
        CLOSE_IN_TIME
#endif
    }

    // A final sum is awaited where this switch's part is complete and no final sum has come before.
    action accept_result() {
        bit<32> tag;
        bit<8> kind;
        workers_t present;
        bit<1> final;
        tags.read(tag, meta.cell);
        kinds.read(kind, meta.cell);
        contributors.read(present, meta.cell);
        finals.read(final, meta.cell);
        meta.fresh = final == 0 && present == meta.all_workers && tag == hdr.aggregation.tag
                     && (kind | RESULT) == hdr.aggregation.kind;
        finals.write(meta.cell, meta.fresh ? 1w1 : final);
    }

    action put_exponent() {
        exponents.write(meta.cell, hdr.aggregation.exponent);
    }

    action raise_exponent() {
        bit<8> largest;
        exponents.read(largest, meta.cell);
        hdr.aggregation.exponent = largest > hdr.aggregation.exponent
                                   ? largest : hdr.aggregation.exponent;
        exponents.write(meta.cell, hdr.aggregation.exponent);
    }

    action get_exponent() {
        exponents.read(hdr.aggregation.exponent, meta.cell);
    }

    action put_shapes() {
        smallest_shapes.write(meta.cell, hdr.opening.smallest);
        largest_shapes.write(meta.cell, hdr.opening.largest);
    }

    action widen_shapes() {
        shape_t smallest;
        shape_t largest;
        smallest_shapes.read(smallest, meta.cell);
        largest_shapes.read(largest, meta.cell);
        hdr.opening.smallest = smallest < hdr.opening.smallest ? smallest : hdr.opening.smallest;
        hdr.opening.largest = largest > hdr.opening.largest ? largest : hdr.opening.largest;
        smallest_shapes.write(meta.cell, hdr.opening.smallest);
        largest_shapes.write(meta.cell, hdr.opening.largest);
    }

    action get_shapes() {
        smallest_shapes.read(hdr.opening.smallest, meta.cell);
        largest_shapes.read(hdr.opening.largest, meta.cell);
    }

#define PUT(name, bits) sum_##name.write(meta.cell, hdr.values.name);
    action put_values() {
        EACH_WORD(PUT)
    }

#define ADD(name, bits) \
        bit<bits> so_far_##name; \
        sum_##name.read(so_far_##name, meta.cell); \
        hdr.values.name = LANE_ADD(so_far_##name, hdr.values.name, bits); \
        sum_##name.write(meta.cell, hdr.values.name);
    action add_values() {
        EACH_WORD(ADD)
    }

#define GET(name, bits) sum_##name.read(hdr.values.name, meta.cell);
    action get_values() {
        EACH_WORD(GET)
    }

#ifdef WIRE_BITS
    action widen() {
        hdr.values.setValid();
        EACH_WORD(WIDEN)
        hdr.narrow.setInvalid();
        hdr.aggregation.kind = SCALED;
        hdr.udp.len = VALUES_LENGTH - 20;
        hdr.ipv4.total_len = VALUES_LENGTH;
    }
#endif

    action answer_all() {
        hdr.aggregation.kind = hdr.aggregation.kind | RESULT;
#ifdef DEADLINE
        hdr.presence.workers = meta.after;
#endif
        standard_metadata.mcast_grp = meta.group;
    }

    action send_up() {
        standard_metadata.egress_spec = meta.parent;
    }

    action answer_one() {
        result_repeated.count(meta.job);
        hdr.aggregation.kind = hdr.aggregation.kind | RESULT;
#ifdef DEADLINE
        hdr.presence.workers = meta.after;
#endif
        standard_metadata.egress_spec = standard_metadata.ingress_port;
    }

    action wait() {
        mark_to_drop(standard_metadata);
    }

    apply {
        members.apply();
        bit<8> kind = hdr.aggregation.kind;
#ifdef WIRE_BITS
        if (hdr.narrow.isValid() && hdr.ipv4.total_len == NARROW_LENGTH
            && hdr.udp.len + 20 == hdr.ipv4.total_len) {
            widen();
        }
#endif
        // A packet has no body here if its kind is unknown, or if it is narrow and has a wrong length.
        bool has_body = hdr.values.isValid() || hdr.opening.isValid();
#ifdef HALVES
        has_body = has_body || hdr.quads[0].isValid();
#endif
        if (meta.all_workers == 0
            || standard_metadata.parser_error != error.NoError
            || standard_metadata.checksum_error == 1
            || hdr.aggregation.version != VERSION
            || !has_body
            || ((kind & RESULT) != 0) != (meta.worker == 0)
            || hdr.aggregation.slot >= meta.slots
            || meta.cell >= CELLS
            || (hdr.values.isValid() && hdr.ipv4.total_len != VALUES_LENGTH)
#ifdef HALVES
            || (hdr.quads[0].isValid() && hdr.ipv4.total_len != VALUES_LENGTH)
#endif
            || (hdr.opening.isValid() && hdr.ipv4.total_len != OPENING_LENGTH)
            || hdr.udp.len + 20 != hdr.ipv4.total_len) {
            refuse();
        } else if (meta.worker == 0) {
            accept_result();
            if (meta.fresh) {
                final_new.count(meta.job);
                meta.counted = true;
                put_exponent();
                if (hdr.opening.isValid()) {
                    put_shapes();
                } else if (hdr.values.isValid()) {
                    put_values();
                }
                answer_all();
            } else {
                final_unneeded.count(meta.job);
                wait();
            }
        } else {
#ifdef DEADLINE
            find_who_lacks_results();
#endif
            record_contribution();
            if (meta.stale) {
                COUNT_STALE
                wait();
            } else if (meta.other_kind) {
                refuse();
            } else if (AGAIN) {
                COUNT_AGAIN
                if (ANSWERABLE) {
                    meta.answered = true;
                    get_exponent();
                    if (hdr.opening.isValid()) {
                        get_shapes();
                    } else if (hdr.values.isValid()) {
                        get_values();
                    }
                    if (meta.holds_result) {
                        answer_one();
#ifdef DEADLINE
                    } else if (closes) {
                        chunk_closed_early.count(meta.job);
                        answer_all();
#endif
                    } else if ((meta.all_workers & (meta.worker - 1)) != 0) {
                        wait();  // all children ask again at once: the first of them speaks for all
                    } else {
                        partial_repeated.count(meta.job);
                        send_up();
                    }
                } else {
                    wait();
                }
            } else {
                contribution_new.count(meta.job);
                meta.counted = true;
                if (meta.before == 0) {
                    put_exponent();
                    if (hdr.opening.isValid()) {
                        put_shapes();
                    } else if (hdr.values.isValid()) {
                        put_values();
                    }
                } else {
                    raise_exponent();
                    if (hdr.opening.isValid()) {
                        widen_shapes();
                    } else if (hdr.values.isValid()) {
                        add_values();
                    }
                }
                if (!ENDS) {
                    wait();
                } else {
                    COUNT_END
                    meta.answered = true;
                    if (meta.parent == NO_PARENT) {
                        answer_all();
                    } else {
                        send_up();
                    }
                }
            }
        }
#ifdef HALVES
        // Each is called once, because every call copies its code. A partial sum is rounded before it goes up, too.
        if (hdr.quads[0].isValid() && meta.counted) {
            if (meta.before == 0) {
                clear_halves();
            }
            take_halves();
        }
        if (hdr.quads[0].isValid() && meta.answered) {
            give_halves();
        }
#endif
    }
}

control SwitchmlIngress(inout headers_t hdr, inout metadata_t meta,
                        inout standard_metadata_t standard_metadata) {
    Aggregation() aggregation;
    Forwarding() forwarding;

    apply {
        if (hdr.aggregation.isValid()) {
            aggregation.apply(hdr, meta, standard_metadata);
        } else {
            forwarding.apply(hdr, meta, standard_metadata);
        }
    }
}

control SwitchmlEgress(inout headers_t hdr, inout metadata_t meta,
                       inout standard_metadata_t standard_metadata) {
    action drop() {
        mark_to_drop(standard_metadata);
    }

    action to_worker(mac_t mac, ipv4_t address, bit<16> udp_port) {
        hdr.ethernet.src = AGGREGATOR_MAC;
        hdr.ethernet.dst = mac;
        hdr.ipv4.src = AGGREGATOR_IPV4;
        hdr.ipv4.dst = address;
        hdr.ipv4.ttl = 64;
        hdr.udp.src_port = AGGREGATOR_PORT;
        hdr.udp.dst_port = udp_port;
        meta.rewritten = true;
    }

    // The port that a result leaves by identifies its receiver: the switch learns no address from a packet.
    table results {
        key = {
            standard_metadata.egress_port: exact;
            hdr.aggregation.job: exact;
        }
        actions = { to_worker; drop; }
        const default_action = drop();
        size = 1024;
    }

    apply {
        if (hdr.aggregation.isValid()) {
            results.apply();
        } else if (standard_metadata.instance_type == INSTANCE_REPLICATION
                   && standard_metadata.egress_port == standard_metadata.ingress_port) {
            drop();  // a flooded frame does not return to the port it came from
        }
    }
}

control SwitchmlComputeChecksum(inout headers_t hdr, inout metadata_t meta) {
    apply {
        update_checksum(meta.rewritten && hdr.ipv4.isValid() && hdr.ipv4.ihl == 5,
            IPV4_CHECKED, hdr.ipv4.checksum, HashAlgorithm.csum16);
        update_checksum(meta.rewritten && hdr.aggregation.isValid(),
            UDP_CHECKED, hdr.udp.checksum, HashAlgorithm.csum16);
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
#ifdef DEADLINE
        packet.emit(hdr.presence);
#endif
        packet.emit(hdr.opening);
        packet.emit(hdr.values);
#ifdef HALVES
        packet.emit(hdr.quads);
#endif
    }
}

V1Switch(SwitchmlParser(), SwitchmlVerifyChecksum(), SwitchmlIngress(), SwitchmlEgress(),
         SwitchmlComputeChecksum(), SwitchmlDeparser()) main;
