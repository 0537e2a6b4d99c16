// NetRPC-style calls (systems/netrpc/README.md): workers call methods of a service. On the way, the switch adds up
// arguments, counts calls and clears values. A table says what a method does, not this program: one program runs every
// service. Compile-time parameters: LANES (values of an array), SLOTS (gathers of all jobs that may be under way),
// CELLS (places of a map for each pair of a packet, all jobs).
//
// All state lives in ingress, and each register is read, changed and written within one action, as BMv2 locks registers
// for one action at a time.
#include <core.p4>
#include <v1model.p4>

#include "include/aggregation_headers.p4"
#include "include/pairs.p4"

// What follows the headers of a call.
const bit<8> NOTHING = 0x40;
const bit<8> ARRAY   = 0x41;
const bit<8> MAP     = 0x42;

// Behind the aggregation header, whose `slot` is the call's position in the caller's window, whose `exponent` is the
// call's word, and whose `tag` is the sequence number of the call at its position.
header call_t {
    bit<32> epoch;   // epoch of the state that the call is about, from the answer to an OPEN
    bit<16> method;
    bit<16> count;   // in an answer: the counter's value, if the method counts
}

struct headers_t {
    ethernet_t      ethernet;
    tag_t[MAX_TAGS] tags;
    ipv4_h          ipv4;
    ipv6_h          ipv6;
    udp_t           udp;
    aggregation_t   aggregation;
    call_t          call;
    values_t        values;
    pairs_t         pairs;
}

#define PAIR_CHECKED(i) , hdr.pairs.place_##i, hdr.pairs.value_##i
#define UDP_CHECKED { \
      hdr.ipv4.src, hdr.ipv4.dst, 8w0, hdr.ipv4.protocol, hdr.udp.len, \
      hdr.udp.src_port, hdr.udp.dst_port, hdr.udp.len, \
      hdr.aggregation.version, hdr.aggregation.kind, hdr.aggregation.job, hdr.aggregation.slot, \
      hdr.aggregation.exponent, hdr.aggregation.attempt, hdr.aggregation.tag, \
      hdr.call.epoch, hdr.call.method, hdr.call.count \
      EACH_WORD(WORD_CHECKED) EACH_PAIR(PAIR_CHECKED) }

struct metadata_t {
    bit<32> job;
    bit<32> workers;     // number of the job's workers; 0: the packet belongs to no job of this switch
    bool    passing;     // the job's calls are executed at another switch
    bit<32> flow;        // where the caller's sequence numbers begin
    bit<16> receiver;    // the receiver of an answer to the caller
    bit<16> window;      // how many positions a caller has
    bit<16> slots;
    bit<32> first_slot;
    bit<16> group;
    bit<16> cells;
    bit<32> first_cell;

    bool    known;       // the service has the method; what it does follows
    bit<8>  argument;
    bool    opens;       // the method begins an epoch once all have called it
    bool    gathers;     // all callers are answered once all have called it
    bool    adds;
    bool    gets;
    bool    clears;
    bool    counts;

    bit<32> place;       // (caller, position)
    bit<32> turn;        // the gather's (slot, set)
    bit<32> epoch;       // epoch of the job's state
    bool    stale;
    bool    skips;       // the caller cannot have reached this sequence number
    bool    again;       // the call was executed before
    bool    first;       // the call is the first of its gather
    bool    other;       // the call has the gather's turn, but another method
    bool    complete;    // all callers have called
    bool    executed;    // the call is answered here
    bit<16> zero;        // always 0: csum16 of a packet whose UDP checksum is 0xffff
    bool    rewritten;   // the IPv4 header changed; otherwise its checksum is left as it came
}

#include "include/lower_layers.p4"
#include "include/forwarding.p4"
#include "include/slots.p4"

const bool SLOTS_FIT = static_assert(SLOTS >= 1 && SLOTS <= 32768,
                                     "SLOTS must be 1 to 32768 (a slot's two sets are indexed by 16 bits)");
#ifndef CELLS
#define CELLS 1024
#endif
const bool CELLS_FIT = static_assert(CELLS >= 1 && CELLS <= 65535,
                                     "CELLS must be 1 to 65535 (a place has 16 bits, and 65535 means none)");

#define CALLERS (JOBS * 64)
#define POSITIONS 256   // positions of a caller's window

const bit<16> NOTHING_LENGTH = 20 + 8 + 12 + 8;
const bit<16> ARRAY_LENGTH = NOTHING_LENGTH + 4 * LANES;
const bit<16> MAP_LENGTH = NOTHING_LENGTH + 6 * PAIRS;

parser NetrpcParser(packet_in packet, out headers_t hdr, inout metadata_t meta,
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

    // A packet of an unknown kind is not a call.
    state parse_aggregation {
        packet.extract(hdr.aggregation);
        transition select(hdr.aggregation.kind) {
            NOTHING: parse_nothing;
            ARRAY: parse_array;
            MAP: parse_map;
            default: accept;
        }
    }

    state parse_nothing {
        packet.extract(hdr.call);
        transition accept;
    }

    state parse_array {
        packet.extract(hdr.call);
        packet.extract(hdr.values);
        transition accept;
    }

    state parse_map {
        packet.extract(hdr.call);
        packet.extract(hdr.pairs);
        transition accept;
    }
}

control NetrpcVerifyChecksum(inout headers_t hdr, inout metadata_t meta) {
    apply {
        verify_checksum(hdr.ipv4.isValid() && hdr.ipv4.ihl == 5,
            IPV4_CHECKED, hdr.ipv4.checksum, HashAlgorithm.csum16);
        // 0: the sender computed none. 0xffff stands for a checksum of 0 (RFC 768), for which csum16 returns 0.
        verify_checksum(hdr.call.isValid() && hdr.udp.checksum != 0 && hdr.udp.checksum != 0xffff,
            UDP_CHECKED, hdr.udp.checksum, HashAlgorithm.csum16);
        verify_checksum(hdr.call.isValid() && hdr.udp.checksum == 0xffff,
            UDP_CHECKED, meta.zero, HashAlgorithm.csum16);
    }
}

// Handles one call, from its fully parsed header to its answer.
control Calls(inout headers_t hdr, inout metadata_t meta,
              inout standard_metadata_t standard_metadata) {
    register<bit<32>>(JOBS) epochs;
    // For every caller and position:
    register<bit<32>>(CALLERS * POSITIONS) sequences;
    register<bit<16>>(CALLERS * POSITIONS) outcomes;  // the counter's value at the time
    // For every gather:
    register<bit<32>>(2 * SLOTS) turns;
    register<bit<32>>(2 * SLOTS) arrivals;
    register<bit<16>>(2 * SLOTS) methods_gathered;
    register<bit<8>>(2 * SLOTS)  words;
#define WORD_REGISTER(name, bits) register<bit<bits>>(2 * SLOTS) sum_##name;
    EACH_WORD(WORD_REGISTER)
    // For every place of a map: its epoch and its value. A value of an older epoch counts as 0.
#define PAIR_REGISTER(i) register<bit<64>>(CELLS) map_##i;
    EACH_PAIR(PAIR_REGISTER)
    register<bit<64>>(CELLS) tallies;  // the same for counters

    counter(JOBS + 1, CounterType.packets_and_bytes) call_new;
    counter(JOBS + 1, CounterType.packets_and_bytes) call_repeated;
    counter(JOBS + 1, CounterType.packets_and_bytes) call_stale;
    counter(JOBS + 1, CounterType.packets_and_bytes) call_lost;
    counter(JOBS + 1, CounterType.packets_and_bytes) call_refused;
    counter(JOBS + 1, CounterType.packets_and_bytes) call_passed;
    counter(JOBS + 1, CounterType.packets_and_bytes) gather_complete;
    counter(JOBS + 1, CounterType.packets_and_bytes) answer_single;

    action set_unknown_sender() {
        meta.job = NO_JOB;
        meta.workers = 0;
    }

    action execute(bit<8> job_index, bit<32> workers, bit<32> flow, bit<16> receiver, bit<16> window,
                   bit<32> first_slot, bit<16> slots, bit<16> group, bit<32> first_cell,
                   bit<16> cells) {
        meta.job = (bit<32>)job_index;
        meta.workers = workers;
        meta.flow = flow;
        meta.receiver = receiver;
        meta.window = window;
        meta.first_slot = first_slot;
        meta.slots = slots;
        meta.group = group;
        meta.first_cell = first_cell;
        meta.cells = cells;
    }

    action forward_unchanged(bit<8> job_index, port_t port) {
        meta.job = (bit<32>)job_index;
        meta.passing = true;
        standard_metadata.egress_spec = port;
    }

    // Port and address together identify the caller: a port that leads to a host accepts only that host's address,
    // and behind the other ports are callers that another switch has already checked.
    table members {
        key = {
            standard_metadata.ingress_port: exact;
            hdr.aggregation.job: exact;
            hdr.ipv4.src: exact;
        }
        actions = { execute; forward_unchanged; set_unknown_sender; }
        const default_action = set_unknown_sender();
        size = 4096;
    }

    action set_unknown_method() {
        meta.known = false;
    }

    action set_method(bit<8> argument, bit<1> opens, bit<1> gathers, bit<1> adds, bit<1> gets,
                   bit<1> clears, bit<1> counts) {
        meta.known = true;
        meta.argument = argument;
        meta.opens = opens == 1;
        meta.gathers = gathers == 1;
        meta.adds = adds == 1;
        meta.gets = gets == 1;
        meta.clears = clears == 1;
        meta.counts = counts == 1;
    }

    // The services: what each method of each job's service does.
    table methods {
        key = {
            hdr.aggregation.job: exact;
            hdr.call.method: exact;
        }
        actions = { set_method; set_unknown_method; }
        const default_action = set_unknown_method();
        size = 1024;
    }

    action refuse() {
        call_refused.count(meta.job);
        mark_to_drop(standard_metadata);
    }

    action wait() {
        mark_to_drop(standard_metadata);
    }

    action locate_slot() {
        meta.place = meta.flow + (bit<32>)hdr.aggregation.slot;
        meta.turn = (meta.first_slot + (bit<32>)hdr.aggregation.slot) << 1
                    | (hdr.aggregation.tag & 1);
    }

    action get_epoch() {
        epochs.read(meta.epoch, meta.job);
        hdr.call.count = 0;
    }

    // No older epoch has this number: after a restart the switch's time differs, and it is never 0.
    action begin_epoch() {
        meta.epoch = (bit<32>)standard_metadata.ingress_global_timestamp | 1;
        epochs.write(meta.job, meta.epoch);
    }

    // A call is new if it follows the last one at its position, or begins another session (the upper 12 bits).
    action check_sequence() {
        bit<32> last;
        sequences.read(last, meta.place);
        bit<32> ahead = hdr.aggregation.tag - last;
        bool used = last != 0;
        meta.again = used && ahead == 0;
        meta.stale = used && ahead[31:31] == 1;
        meta.skips = used && ahead[31:31] == 0 && ahead > 1
                     && hdr.aggregation.tag[31:20] == last[31:20];
        sequences.write(meta.place, meta.stale || meta.skips ? last : hdr.aggregation.tag);
    }

    action record_arrival() {
        bit<32> turn;
        bit<32> arrived;
        bit<16> method;
        bit<8> word;
        turns.read(turn, meta.turn);
        arrivals.read(arrived, meta.turn);
        methods_gathered.read(method, meta.turn);
        words.read(word, meta.turn);
        bit<32> ahead = hdr.aggregation.tag - turn;
        meta.stale = turn != 0 && ahead[31:31] == 1;
        meta.first = turn == 0 || (ahead != 0 && !meta.stale);
        meta.other = !meta.first && !meta.stale && method != hdr.call.method;
        bool joins = !meta.stale && !meta.other;
        word = meta.first ? 0 : word;
        word = joins && hdr.aggregation.exponent > word ? hdr.aggregation.exponent : word;
        arrived = meta.first ? 0 : arrived;
        arrived = joins ? arrived + 1 : arrived;
        meta.complete = joins && arrived == meta.workers;
        turns.write(meta.turn, joins ? hdr.aggregation.tag : turn);
        arrivals.write(meta.turn, arrived);
        methods_gathered.write(meta.turn, joins ? hdr.call.method : method);
        words.write(meta.turn, word);
        hdr.aggregation.exponent = word;
    }

    // Find out whether there is an answer for a caller that asks again.
    action read_arrivals() {
        bit<32> turn;
        bit<32> arrived;
        bit<16> method;
        turns.read(turn, meta.turn);
        arrivals.read(arrived, meta.turn);
        methods_gathered.read(method, meta.turn);
        words.read(hdr.aggregation.exponent, meta.turn);
        meta.complete = turn == hdr.aggregation.tag && method == hdr.call.method
                        && arrived == meta.workers;
    }

#define PUT_ARRAY(name, bits) sum_##name.write(meta.turn, hdr.values.name);
    action put_values() {
        EACH_WORD(PUT_ARRAY)
    }

#define ADD_ARRAY(name, bits) \
        bit<bits> so_far_##name; \
        sum_##name.read(so_far_##name, meta.turn); \
        hdr.values.name = LANE_ADD(so_far_##name, hdr.values.name, bits); \
        sum_##name.write(meta.turn, hdr.values.name);
    action add_values() {
        EACH_WORD(ADD_ARRAY)
    }

#define GET_ARRAY(name, bits) sum_##name.read(hdr.values.name, meta.turn);
    action get_values() {
        EACH_WORD(GET_ARRAY)
    }

    // A pair that is not used touches the job's first place and leaves it as it is.
#define TOUCH(i) \
        bit<64> cell_##i; \
        bit<32> at_##i = meta.first_cell \
            + (hdr.pairs.place_##i == NO_PLACE ? 32w0 : (bit<32>)hdr.pairs.place_##i); \
        map_##i.read(cell_##i, at_##i); \
        bit<32> held_##i = cell_##i[63:32] == meta.epoch ? cell_##i[31:0] : 0; \
        bool used_##i = hdr.pairs.place_##i != NO_PLACE; \
        held_##i = used_##i && meta.adds ? held_##i + hdr.pairs.value_##i : held_##i; \
        held_##i = used_##i && meta.clears ? 0 : held_##i; \
        map_##i.write(at_##i, meta.epoch ++ held_##i); \
        hdr.pairs.value_##i = held_##i;
    action update_pairs() {
        EACH_PAIR(TOUCH)
    }

    // Count at the place that the first pair names. The counter saturates.
    action increment_place_counter() {
        bit<64> cell;
        bit<32> at = meta.first_cell + (bit<32>)hdr.pairs.place_a0;
        tallies.read(cell, at);
        bit<16> held = cell[63:32] == meta.epoch ? cell[15:0] : 0;
        held = held == 0xffff ? held : held + 1;
        held = meta.clears ? 0 : held;
        tallies.write(at, meta.epoch ++ (bit<32>)held);
        outcomes.write(meta.place, held);
        hdr.call.count = held;
    }

    action read_outcome() {
        outcomes.read(hdr.call.count, meta.place);
    }

    action skip_update() {
        meta.adds = false;
        meta.clears = false;
    }

    // An answer carries what the method reads; other methods are answered with headers alone.
    action strip_values() {
        hdr.values.setInvalid();
        hdr.pairs.setInvalid();
        hdr.aggregation.kind = NOTHING;
        hdr.ipv4.total_len = NOTHING_LENGTH;
        hdr.udp.len = NOTHING_LENGTH - 20;
    }

    action answer() {
        meta.executed = true;
        hdr.aggregation.kind = hdr.aggregation.kind | RESULT;
        hdr.call.epoch = meta.epoch;
    }

    action answer_all() {
        answer();
        standard_metadata.mcast_grp = meta.group;
    }

    action answer_one() {
        answer_single.count(meta.job);
        answer();
        standard_metadata.egress_spec = standard_metadata.ingress_port;
    }

    apply {
        members.apply();
        if (meta.workers != 0) {
            methods.apply();
            locate_slot();
        }
        if ((meta.workers == 0 && !meta.passing)
            || standard_metadata.parser_error != error.NoError
            || standard_metadata.checksum_error == 1
            || hdr.aggregation.version != VERSION
            || !hdr.call.isValid()
            || (hdr.values.isValid() && hdr.ipv4.total_len != ARRAY_LENGTH)
            || (hdr.pairs.isValid() && hdr.ipv4.total_len != MAP_LENGTH)
            || (!hdr.values.isValid() && !hdr.pairs.isValid() && hdr.ipv4.total_len != NOTHING_LENGTH)
            || hdr.udp.len + 20 != hdr.ipv4.total_len) {
            refuse();
        } else if (meta.passing) {
            call_passed.count(meta.job);
        } else if (!meta.known
            || hdr.aggregation.kind != meta.argument
            || hdr.aggregation.tag == 0
            || hdr.aggregation.slot >= meta.window
            || hdr.aggregation.slot >= POSITIONS
            || (meta.gathers && (hdr.aggregation.slot >= meta.slots || meta.turn >= 2 * SLOTS))
            || (meta.counts && hdr.pairs.place_a0 >= meta.cells)
#define BEYOND(i) || (hdr.pairs.isValid() && hdr.pairs.place_##i >= meta.cells \
                      && hdr.pairs.place_##i != NO_PLACE)
            EACH_PAIR(BEYOND)) {
            refuse();
        } else {
            get_epoch();
            if (!meta.opens && (meta.epoch == 0 || meta.epoch != hdr.call.epoch)) {
                call_lost.count(meta.job);
                wait();
            } else {
                check_sequence();
                if (meta.stale) {
                    call_stale.count(meta.job);
                    wait();
                } else if (meta.skips) {
                    refuse();
                } else if (meta.again) {
                    call_repeated.count(meta.job);
                    skip_update();
                    if (meta.gathers) {
                        read_arrivals();
                    } else if (meta.counts) {
                        read_outcome();
                    }
                    if (meta.gathers && !meta.complete) {
                        wait();
                    } else {
                        if (!meta.gets) {
                            strip_values();
                        } else if (hdr.values.isValid()) {
                            get_values();
                        } else {
                            update_pairs();
                        }
                        answer_one();
                    }
                } else if (meta.gathers) {
                    record_arrival();
                    if (meta.stale) {
                        call_stale.count(meta.job);
                        wait();
                    } else if (meta.other) {
                        refuse();
                    } else {
                        call_new.count(meta.job);
                        if (hdr.values.isValid()) {
                            if (meta.first) {
                                put_values();
                            } else {
                                add_values();
                            }
                        }
                        if (meta.complete) {
                            gather_complete.count(meta.job);
                            if (meta.opens) {
                                begin_epoch();
                            }
                            if (!meta.gets) {
                                strip_values();
                            }
                            answer_all();
                        } else {
                            wait();
                        }
                    }
                } else {
                    call_new.count(meta.job);
                    if (meta.counts) {
                        increment_place_counter();
                    } else {
                        update_pairs();
                    }
                    if (!meta.gets) {
                        strip_values();
                    }
                    answer_one();
                }
            }
        }
    }
}

control NetrpcIngress(inout headers_t hdr, inout metadata_t meta,
                      inout standard_metadata_t standard_metadata) {
    Calls() calls;
    Forwarding() forwarding;

    counter(1, CounterType.packets_and_bytes) answer_passed;

    action deliver(port_t port) {
        answer_passed.count(0);
        meta.passing = true;
        standard_metadata.egress_spec = port;
    }

    // Answers of another switch come in by the port that leads to it.
    table deliveries {
        key = {
            standard_metadata.ingress_port: exact;
            hdr.ipv4.dst: exact;
        }
        actions = { deliver; NoAction; }
        const default_action = NoAction();
        size = 4096;
    }

    apply {
        if (hdr.aggregation.isValid()) {
            calls.apply(hdr, meta, standard_metadata);
        } else {
            if (hdr.ethernet.ethertype == ETHERTYPE_IPV4 && hdr.ipv4.isValid()
                && hdr.ipv4.src == AGGREGATOR_IPV4) {
                deliveries.apply();
            }
            if (!meta.passing) {
                forwarding.apply(hdr, meta, standard_metadata);
            }
        }
    }
}

control NetrpcEgress(inout headers_t hdr, inout metadata_t meta,
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

    // An answer's receiver is identified by its number in the job: the switch learns no address from a packet.
    table receivers {
        key = {
            hdr.aggregation.job: exact;
            meta.receiver: exact;
        }
        actions = { to_worker; drop; }
        const default_action = drop();
        size = 2048;
    }

    apply {
        bool copied = standard_metadata.instance_type == INSTANCE_REPLICATION;
        if (meta.executed) {
            if (copied) {
                meta.receiver = standard_metadata.egress_rid;
            }
            receivers.apply();
        } else if (copied && standard_metadata.egress_port == standard_metadata.ingress_port) {
            drop();  // a flooded frame does not return to the port it came from
        }
    }
}

control NetrpcComputeChecksum(inout headers_t hdr, inout metadata_t meta) {
    apply {
        update_checksum(meta.rewritten && hdr.ipv4.isValid() && hdr.ipv4.ihl == 5,
            IPV4_CHECKED, hdr.ipv4.checksum, HashAlgorithm.csum16);
        update_checksum(meta.executed, UDP_CHECKED, hdr.udp.checksum, HashAlgorithm.csum16);
    }
}

control NetrpcDeparser(packet_out packet, in headers_t hdr) {
    apply {
        packet.emit(hdr.ethernet);
        packet.emit(hdr.tags);
        packet.emit(hdr.ipv4);
        packet.emit(hdr.ipv6);
        packet.emit(hdr.udp);
        packet.emit(hdr.aggregation);
        packet.emit(hdr.call);
        packet.emit(hdr.values);
        packet.emit(hdr.pairs);
    }
}

V1Switch(NetrpcParser(), NetrpcVerifyChecksum(), NetrpcIngress(), NetrpcEgress(),
         NetrpcComputeChecksum(), NetrpcDeparser()) main;
