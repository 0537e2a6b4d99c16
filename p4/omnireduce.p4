// OmniReduce-style aggregation (systems/omnireduce/README.md): the blocks of a tensor that are zero everywhere do not
// travel. A slot walks a column of blocks; with each contribution a worker says which block of the column it has next,
// and the switch answers with the first that anybody has. A worker that has nothing for a block sends headers alone.
// Compile-time parameters: LANES (values a block has), SLOTS (slots of all jobs).
//
// A packet may be fused: entries of other columns, for which its sender has no values, stand behind it. The switch
// takes it apart, one entry a pass: two copies recirculate, one as if the entry had been sent alone, and then the
// packet without it.
//
// Slots, sets, tags, members and switches below switches are those of docs/protocol.md. All state lives in ingress, and
// each register is read, changed and written within one action, as BMv2 locks registers for one action at a time.
#include <core.p4>
#include <v1model.p4>

#include "include/aggregation_headers.p4"

const bit<8> INT32   = 0x30;
const bit<8> SCALED  = 0x31;
const bit<8> OPENING = 0x32;
const bit<8> BARE    = 0x40;  // headers alone: the sender has nothing for the block
const bit<8> FUSED   = 0x08;  // entries of other columns follow

// Where a packet is in its column: the block it is about, and the next that its sender has.
header column_t {
    bit<32> block;
    bit<32> next;
}

// What a fused packet says about one more column, as a packet of headers alone or an OPENING would. ahead: the distance
// from the block to the next that its sender has.
header entry_t {
    bit<16> slot;
    bit<32> tag;
    bit<32> block;
    bit<16> ahead;
    bit<8>  exponent;
}

#define ENTRY_BYTES 13
// One more than fits into the longest varbit that p4c accepts.
#define ENTRIES_MAX 20
const bit<16> NOTHING_AHEAD = 0xffff;
const bit<32> NO_BLOCK      = 0xffffffff;

// The entries that follow the first one.
header entries_t {
    varbit<(8 * ENTRY_BYTES * (ENTRIES_MAX - 1))> entries;
}

struct headers_t {
    ethernet_t      ethernet;
    tag_t[MAX_TAGS] tags;
    ipv4_h          ipv4;
    ipv6_h          ipv6;
    udp_t           udp;
    aggregation_t   aggregation;
    column_t        column;
    opening_t       opening;
    values_t        values;
    entry_t         entry;
    entries_t       rest;
}

// Entries come last: they may be an odd number of bytes.
#define ENTRIES_CHECKED hdr.entry.slot, hdr.entry.tag, hdr.entry.block, hdr.entry.ahead, hdr.entry.exponent, \
                        hdr.rest.entries
#define UDP_CHECKED { HEADERS_CHECKED, hdr.column.block, hdr.column.next, BODY_CHECKED, ENTRIES_CHECKED }

typedef bit<64> workers_t;  // one bit for each worker

struct metadata_t {
    @field_list(1)
    port_t    port;         // where the packet came in, before it was taken apart
    @field_list(1)
    bool      apart;        // a part of a packet whose checksums were right
    bit<32>   job;
    workers_t worker;       // the sender's bit; 0: it is not a child of this switch
    workers_t all_workers;  // the bits of all children; 0: the packet belongs to no job of this switch
    port_t    parent;       // where partial sums go; NO_PARENT: this switch is the job's root
    bit<16>   slots;
    bit<16>   group;
    bit<16>   alone;        // IPv4 length of the first packet, without entries
    bit<32>   cell;         // (slot, set)
    bool      stale;
    bool      fresh;        // the packet is the first with a new tag: it overwrites the cell
    bool      other;        // the packet has the cell's tag, but another kind or block
    bool      holds_result;      // the cell holds the job's final sum, not this switch's part of it
    bool      filled;       // the cell held values before this packet
    workers_t before;       // the workers that contributed before this packet
    workers_t after;
    bit<16>   zero;         // always 0: csum16 of a packet whose UDP checksum is 0xffff
    bool      rewritten;    // the IPv4 header changed; otherwise its checksum is left as it came
}

#include "include/lower_layers.p4"
#include "include/forwarding.p4"
#include "include/slots.p4"

const bool SLOTS_FIT = static_assert(SLOTS >= 1 && SLOTS <= 32768,
                                     "SLOTS must be 1 to 32768 (a slot's two sets are indexed by 16 bits)");

#define CELLS (2 * SLOTS)

const bit<16> HEADERS_LENGTH = 20 + 8 + 12 + 8;
const bit<16> OPENING_LENGTH = HEADERS_LENGTH + 2 * 18;
const bit<16> VALUES_LENGTH = HEADERS_LENGTH + 4 * LANES;

// The two copies that a fused packet is taken apart by; systems/omnireduce/system.py fills the group.
const bit<16> APART_GROUP = 0x7fff;
const bit<16> ENTRY_COPY  = 2;  // 1 is that of every other group's copies
const bit<16> REST_COPY   = 3;

const port_t  NO_PARENT = 511;

parser OmnireduceParser(packet_in packet, out headers_t hdr, inout metadata_t meta,
                        inout standard_metadata_t standard_metadata) {
    LowerLayers() lower_layers;

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

    // A packet of an unknown kind has no column.
    state parse_aggregation {
        packet.extract(hdr.aggregation);
        transition select(hdr.aggregation.kind & ~RESULT) {
            INT32: parse_values;
            SCALED: parse_values;
            INT32 | BARE: parse_nothing;
            SCALED | BARE: parse_nothing;
            OPENING: parse_opening;
            INT32 | FUSED: parse_values;
            SCALED | FUSED: parse_values;
            INT32 | BARE | FUSED: parse_nothing;
            SCALED | BARE | FUSED: parse_nothing;
            OPENING | FUSED: parse_opening;
            default: accept;
        }
    }

    state parse_nothing {
        packet.extract(hdr.column);
        meta.alone = HEADERS_LENGTH;
        transition parse_entries;
    }

    state parse_opening {
        packet.extract(hdr.column);
        packet.extract(hdr.opening);
        meta.alone = OPENING_LENGTH;
        transition parse_entries;
    }

    state parse_entries {
        transition select(hdr.aggregation.kind & FUSED) {
            FUSED: parse_entry;
            default: accept;
        }
    }

    state parse_entry {
        bit<16> entries = hdr.ipv4.total_len - meta.alone;
        verify(entries >= ENTRY_BYTES && entries <= ENTRY_BYTES * ENTRIES_MAX, error.HeaderTooShort);
        packet.extract(hdr.entry);
        packet.extract(hdr.rest, (bit<32>)(entries - ENTRY_BYTES) * 8);
        transition accept;
    }

    state parse_values {
        packet.extract(hdr.column);
        packet.extract(hdr.values);
        meta.alone = VALUES_LENGTH;
        transition parse_entries;
    }
}

control OmnireduceVerifyChecksum(inout headers_t hdr, inout metadata_t meta) {
    apply {
        verify_checksum(!meta.apart && hdr.ipv4.isValid() && hdr.ipv4.ihl == 5,
            IPV4_CHECKED, hdr.ipv4.checksum, HashAlgorithm.csum16);
        // 0: the sender computed none. 0xffff stands for a checksum of 0 (RFC 768), for which csum16 returns 0.
        verify_checksum(!meta.apart && hdr.aggregation.isValid() && hdr.udp.checksum != 0
                        && hdr.udp.checksum != 0xffff,
            UDP_CHECKED, hdr.udp.checksum, HashAlgorithm.csum16);
        verify_checksum(!meta.apart && hdr.aggregation.isValid() && hdr.udp.checksum == 0xffff,
            UDP_CHECKED, meta.zero, HashAlgorithm.csum16);
    }
}

// Handles one contribution, from its fully parsed header to the decision where it goes.
control Aggregation(inout headers_t hdr, inout metadata_t meta,
                    inout standard_metadata_t standard_metadata) {
    register<bit<32>>(CELLS)   tags;
    register<bit<8>>(CELLS)    kinds;
    register<bit<32>>(CELLS)   blocks;
    register<workers_t>(CELLS) contributors;
    register<bit<1>>(CELLS)    finals;
    register<bit<1>>(CELLS)    fillings;
    register<bit<40>>(CELLS)   announcements;
    register<shape_t>(CELLS)   smallest_shapes;
    register<shape_t>(CELLS)   largest_shapes;
    EACH_WORD(SUM_REGISTER)

    counter(JOBS + 1, CounterType.packets_and_bytes) contribution_new;
    counter(JOBS + 1, CounterType.packets_and_bytes) contribution_duplicate;
    counter(JOBS + 1, CounterType.packets_and_bytes) contribution_stale;
    counter(JOBS + 1, CounterType.packets_and_bytes) contribution_refused;
    counter(JOBS + 1, CounterType.packets_and_bytes) chunk_complete;
    counter(JOBS + 1, CounterType.packets_and_bytes) result_repeated;
    counter(JOBS + 1, CounterType.packets_and_bytes) partial_repeated;
    counter(JOBS + 1, CounterType.packets_and_bytes) final_new;
    counter(JOBS + 1, CounterType.packets_and_bytes) final_unneeded;
    counter(JOBS + 1, CounterType.packets_and_bytes) taken_apart;

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
        meta.cell = ((bit<32>)first_slot + (bit<32>)hdr.aggregation.slot) << 1
                    | (hdr.aggregation.tag & 1);
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
            meta.port: exact @name("standard_metadata.ingress_port");
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
        bit<32> block;
        workers_t present;
        bit<1> final;
        bit<1> filled;
        tags.read(tag, meta.cell);
        kinds.read(kind, meta.cell);
        blocks.read(block, meta.cell);
        contributors.read(present, meta.cell);
        finals.read(final, meta.cell);
        fillings.read(filled, meta.cell);
        bit<32> ahead = hdr.aggregation.tag - tag;
        bool used = present != 0;  // a cell that nobody ever contributed to has no tag to compare with
        meta.stale = used && ahead[31:31] == 1;
        meta.fresh = !used || (ahead != 0 && !meta.stale);
        meta.other = !meta.fresh && !meta.stale
                     && ((hdr.aggregation.kind & ~BARE) != kind || hdr.column.block != block);
        meta.before = meta.fresh ? 0 : present;
        meta.after = meta.stale || meta.other ? present : meta.before | meta.worker;
        meta.filled = !meta.fresh && filled == 1;
        tags.write(meta.cell, meta.stale ? tag : hdr.aggregation.tag);
        kinds.write(meta.cell, meta.fresh ? hdr.aggregation.kind & ~BARE : kind);
        blocks.write(meta.cell, meta.fresh ? hdr.column.block : block);
        contributors.write(meta.cell, meta.after);
        meta.holds_result = !meta.fresh && final == 1;
        finals.write(meta.cell, meta.holds_result || (meta.parent == NO_PARENT
                                                 && meta.after == meta.all_workers) ? 1w1 : 1w0);
        fillings.write(meta.cell, meta.filled || (meta.after != meta.before && hdr.values.isValid())
                                  ? 1w1 : 1w0);
    }

    // A final sum is awaited where this switch's part is complete and no final sum has come before.
    action accept_result() {
        bit<32> tag;
        bit<8> kind;
        bit<32> block;
        workers_t present;
        bit<1> final;
        bit<1> filled;
        tags.read(tag, meta.cell);
        kinds.read(kind, meta.cell);
        blocks.read(block, meta.cell);
        contributors.read(present, meta.cell);
        finals.read(final, meta.cell);
        fillings.read(filled, meta.cell);
        meta.fresh = final == 0 && present == meta.all_workers && tag == hdr.aggregation.tag
                     && (kind | RESULT) == (hdr.aggregation.kind & ~BARE) && block == hdr.column.block;
        finals.write(meta.cell, meta.fresh ? 1w1 : final);
        fillings.write(meta.cell, !meta.fresh ? filled : (hdr.values.isValid() ? 1w1 : 1w0));
    }

    // The next block that any worker has, and the largest exponent of the workers that have it, kept as one number
    // that is smallest for the earliest block.
    action put_announcement() {
        announcements.write(meta.cell, hdr.column.next ++ ~hdr.aggregation.exponent);
    }

    action merge_announcement() {
        bit<40> first;
        announcements.read(first, meta.cell);
        bit<40> own = hdr.column.next ++ ~hdr.aggregation.exponent;
        first = own < first ? own : first;
        announcements.write(meta.cell, first);
        hdr.column.next = first[39:8];
        hdr.aggregation.exponent = ~first[7:0];
    }

    action get_announcement() {
        bit<40> first;
        announcements.read(first, meta.cell);
        hdr.column.next = first[39:8];
        hdr.aggregation.exponent = ~first[7:0];
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

    action put_values() {
        EACH_WORD(PUT)
    }

    action add_values() {
        EACH_WORD(ADD)
    }

    // Whatever values the packet brought, it leaves with those of the cell.
    action get_values() {
        hdr.values.setValid();
        EACH_WORD(GET)
        hdr.aggregation.kind = hdr.aggregation.kind & ~BARE;
        hdr.ipv4.total_len = VALUES_LENGTH;
        hdr.udp.len = VALUES_LENGTH - 20;
    }

    action get_nothing() {
        hdr.values.setInvalid();
        hdr.aggregation.kind = hdr.aggregation.kind | BARE;
        hdr.ipv4.total_len = HEADERS_LENGTH;
        hdr.udp.len = HEADERS_LENGTH - 20;
    }

    action answer_all() {
        hdr.aggregation.kind = hdr.aggregation.kind | RESULT;
        standard_metadata.mcast_grp = meta.group;
    }

    action send_up() {
        standard_metadata.egress_spec = meta.parent;
    }

    action answer_one() {
        result_repeated.count(meta.job);
        hdr.aggregation.kind = hdr.aggregation.kind | RESULT;
        standard_metadata.egress_spec = meta.port;
    }

    action take_apart() {
        taken_apart.count(meta.job);
        standard_metadata.mcast_grp = APART_GROUP;
    }

    action wait() {
        mark_to_drop(standard_metadata);
    }

    apply {
        if (!meta.apart) {
            meta.port = standard_metadata.ingress_port;
        }
        members.apply();
        if (meta.all_workers == 0
            || standard_metadata.parser_error != error.NoError
            || standard_metadata.checksum_error == 1
            || hdr.aggregation.version != VERSION
            || !hdr.column.isValid()
            || ((hdr.aggregation.kind & RESULT) != 0) != (meta.worker == 0)
            || hdr.aggregation.slot >= meta.slots
            || meta.cell >= CELLS
            || (hdr.entry.isValid() && meta.worker == 0)
            || (!hdr.entry.isValid() && hdr.ipv4.total_len != meta.alone)
            || hdr.udp.len + 20 != hdr.ipv4.total_len) {
            refuse();
        } else if (hdr.entry.isValid()) {
            take_apart();
        } else if (meta.worker == 0) {
            accept_result();
            if (meta.fresh) {
                final_new.count(meta.job);
                put_announcement();
                if (hdr.opening.isValid()) {
                    put_shapes();
                }
                if (hdr.values.isValid()) {
                    put_values();
                }
                answer_all();
            } else {
                final_unneeded.count(meta.job);
                wait();
            }
        } else {
            record_contribution();
            if (meta.stale) {
                contribution_stale.count(meta.job);
                wait();
            } else if (meta.other) {
                refuse();
            } else if ((meta.before & meta.worker) != 0) {
                contribution_duplicate.count(meta.job);
                if (meta.before != meta.all_workers) {
                    wait();
                } else if (!meta.holds_result && (meta.all_workers & (meta.worker - 1)) != 0) {
                    wait();  // all children ask again at once: the first of them speaks for all
                } else {
                    get_announcement();
                    if (hdr.opening.isValid()) {
                        get_shapes();
                    } else if (meta.filled) {
                        get_values();
                    } else {
                        get_nothing();
                    }
                    if (meta.holds_result) {
                        answer_one();
                    } else {
                        partial_repeated.count(meta.job);
                        send_up();
                    }
                }
            } else {
                contribution_new.count(meta.job);
                if (meta.before == 0) {
                    put_announcement();
                    if (hdr.opening.isValid()) {
                        put_shapes();
                    }
                } else {
                    merge_announcement();
                    if (hdr.opening.isValid()) {
                        widen_shapes();
                    }
                }
                if (hdr.values.isValid()) {
                    if (meta.filled) {
                        add_values();
                    } else {
                        put_values();
                    }
                }
                if (meta.after != meta.all_workers) {
                    wait();
                } else {
                    chunk_complete.count(meta.job);
                    if (meta.filled && !hdr.values.isValid()) {
                        get_values();
                    }
                    if (meta.parent == NO_PARENT) {
                        answer_all();
                    } else {
                        send_up();
                    }
                }
            }
        }
    }
}

control OmnireduceIngress(inout headers_t hdr, inout metadata_t meta,
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

control OmnireduceEgress(inout headers_t hdr, inout metadata_t meta,
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

    // This copy becomes the entry, as if it had been sent alone.
    action keep_entry() {
        hdr.aggregation.slot = hdr.entry.slot;
        hdr.aggregation.tag = hdr.entry.tag;
        hdr.aggregation.exponent = hdr.entry.exponent;
        hdr.column.block = hdr.entry.block;
        hdr.column.next = hdr.entry.ahead == NOTHING_AHEAD ? NO_BLOCK
                                                           : hdr.entry.block + (bit<32>)hdr.entry.ahead;
        hdr.aggregation.kind = hdr.aggregation.kind & ~FUSED | (hdr.opening.isValid() ? 8w0 : BARE);
        hdr.ipv4.total_len = hdr.opening.isValid() ? OPENING_LENGTH : HEADERS_LENGTH;
        hdr.udp.len = hdr.ipv4.total_len - 20;
        hdr.values.setInvalid();
        hdr.entry.setInvalid();
        hdr.rest.setInvalid();
        meta.apart = true;
        recirculate_preserving_field_list(1);
    }

    // This copy becomes the packet without the entry.
    action keep_rest() {
        hdr.ipv4.total_len = hdr.ipv4.total_len - ENTRY_BYTES;
        hdr.udp.len = hdr.udp.len - ENTRY_BYTES;
        hdr.aggregation.kind = hdr.ipv4.total_len == meta.alone ? hdr.aggregation.kind & ~FUSED
                                                                : hdr.aggregation.kind;
        hdr.entry.setInvalid();
        meta.apart = true;
        recirculate_preserving_field_list(1);
    }

    apply {
        if (standard_metadata.egress_rid == ENTRY_COPY) {
            keep_entry();
        } else if (standard_metadata.egress_rid == REST_COPY) {
            keep_rest();
        } else if (hdr.aggregation.isValid()) {
            results.apply();
        } else if (standard_metadata.instance_type == INSTANCE_REPLICATION
                   && standard_metadata.egress_port == standard_metadata.ingress_port) {
            drop();  // a flooded frame does not return to the port it came from
        }
    }
}

control OmnireduceComputeChecksum(inout headers_t hdr, inout metadata_t meta) {
    apply {
        update_checksum(meta.rewritten && hdr.ipv4.isValid() && hdr.ipv4.ihl == 5,
            IPV4_CHECKED, hdr.ipv4.checksum, HashAlgorithm.csum16);
        update_checksum(meta.rewritten && hdr.aggregation.isValid(),
            UDP_CHECKED, hdr.udp.checksum, HashAlgorithm.csum16);
    }
}

control OmnireduceDeparser(packet_out packet, in headers_t hdr) {
    apply {
        packet.emit(hdr.ethernet);
        packet.emit(hdr.tags);
        packet.emit(hdr.ipv4);
        packet.emit(hdr.ipv6);
        packet.emit(hdr.udp);
        packet.emit(hdr.aggregation);
        packet.emit(hdr.column);
        packet.emit(hdr.opening);
        packet.emit(hdr.values);
        packet.emit(hdr.entry);
        packet.emit(hdr.rest);
    }
}

V1Switch(OmnireduceParser(), OmnireduceVerifyChecksum(), OmnireduceIngress(), OmnireduceEgress(),
         OmnireduceComputeChecksum(), OmnireduceDeparser()) main;
