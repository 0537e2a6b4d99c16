// A pool of slots that all jobs share, with a server for what finds no slot: the body of programs that include it.
//
// The first contribution to a chunk claims the slot that its sender chose by a hash; those that follow are added to it.
// A whole sum goes to the job's server, whose answer frees the slot on its way to the workers. A packet that finds
// another chunk in the slot goes to the server alone. A contribution that is sent again takes along what the slot holds
// of its chunk. A packet says which workers' values it has (`members`), so that the server adds each of them once.
// With PREEMPTION a contribution of a higher priority takes a slot over, and what the slot held goes to its server.
// Compile-time parameters: LANES (values a packet carries), SLOTS (slots of the switch), MARK_US
// (packets that would wait longer for a link are marked), ABANDONED_US (a slot that nobody touched for longer is free).
//
// All state of slots lives in ingress, and each register is read, changed and written within one action, as BMv2 locks
// registers for one action at a time.
#ifndef POOLING_P4
#define POOLING_P4

#include "aggregation_headers.p4"

const bit<8> INT32    = 0x50;
const bit<8> SCALED   = 0x51;  // floats as integers, by a scale that a job has agreed on
const bit<8> FLOAT32  = 0x52;  // floats as they are: summed by the server alone
const bit<8> MISMATCH = 0x53;  // only the server sends it: the workers did not begin the same round

const bit<8> RESEND    = 0x01;  // sent before
const bit<8> COLLISION = 0x02;  // a switch had no slot for the packet
const bit<8> OVERFLOW  = 0x04;  // a worker's values do not fit the scale
const bit<8> CONGESTED = 0x08;  // the packet would have waited long for a link
const bit<8> EVICTED   = 0x10;  // the packet has what a slot held when another chunk took it over

header pooled_t {
    bit<32> session;
    bit<32> digest;   // digest of the round's shape: elements, workers, lanes, ...
    bit<32> oldest;   // the sender has all results before this tag; in a MISMATCH the digest that differs
    bit<32> members;  // the workers whose values are in the packet; in a result, its receivers
    bit<8>  flags;
    bit<8>  priority;
    bit<16> zero;
}

struct headers_t {
    ethernet_t      ethernet;
    tag_t[MAX_TAGS] tags;
    ipv4_h          ipv4;
    ipv6_h          ipv6;
    udp_t           udp;
    aggregation_t   aggregation;
    pooled_t        pooled;
    values_t        values;
}

#define UDP_CHECKED { HEADERS_CHECKED, \
      hdr.pooled.session, hdr.pooled.digest, hdr.pooled.oldest, hdr.pooled.members, \
      hdr.pooled.flags, hdr.pooled.priority, hdr.pooled.zero EACH_WORD(WORD_CHECKED) }

typedef bit<32>  members_t;  // one bit for each worker
typedef bit<112> owner_t;    // job, session, digest and tag of the chunk that has a slot; 0: nobody has it

struct metadata_t {
    bit<32>   job;
    members_t members;    // the workers whose values the packet brings
    members_t all;        // the workers below this switch
    port_t    parent;     // towards the server
    bit<16>   group;
    bit<32>   slot;
    bit<1>    is_result;
    bool      known;      // the packet comes from a member of the job, or from the server's port
    bool      claims;     // the slot was free
    bool      adds;       // the slot has other members' values of the chunk
    bool      repeats;    // the slot has these members' values already
    bool      releases;   // the slot's values go to the server
    bool      merges;     // the packet's values are added to these
    bool      passes;     // the packet is for the server, whatever the slot has
    bool      evicts;
    bool      complete;
    bit<64>   wait_ns;
    bit<16>   zero;       // always 0: csum16 of a packet whose UDP checksum is 0xffff
    bool      rewritten;  // the IPv4 header changed; otherwise its checksum is left as it came
}

#include "lower_layers.p4"
#include "forwarding.p4"
#include "phantom_queue.p4"

#ifndef SLOTS
#define SLOTS 512
#endif
#if SLOTS < 1 || SLOTS > 65535
#error "SLOTS must be 1 to 65535 (a packet names a slot in 16 bits)"
#endif

#ifndef MARK_US
#define MARK_US 2000
#endif

#ifndef ABANDONED_US
#define ABANDONED_US 1000000
#endif

#define JOBS 16

const bit<32> NO_JOB = JOBS;          // where packets are counted that belong to no job
const bit<64> MARK_NS = MARK_US * 1000;   // packets are marked that would wait longer for a link
const bit<48> ABANDONED = ABANDONED_US;  // a slot that nobody has touched for so long is free

const bit<16> HEADERS_LENGTH = 20 + 8 + 12 + 20;
const bit<16> VALUES_LENGTH = HEADERS_LENGTH + 4 * LANES;

parser PoolingParser(packet_in packet, out headers_t hdr, inout metadata_t meta,
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

    // A packet of an unknown kind has neither the second header nor values.
    state parse_aggregation {
        packet.extract(hdr.aggregation);
        transition select(hdr.aggregation.kind & ~RESULT) {
            INT32: parse_values;
            SCALED: parse_values;
            FLOAT32: parse_values;
            MISMATCH: parse_nothing;
            default: accept;
        }
    }

    state parse_nothing {
        packet.extract(hdr.pooled);
        transition accept;
    }

    state parse_values {
        packet.extract(hdr.pooled);
        packet.extract(hdr.values);
        transition accept;
    }
}

control PoolingVerifyChecksum(inout headers_t hdr, inout metadata_t meta) {
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

// Handles one packet of a job, from its fully parsed header to the decision where it goes.
control Pooling(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    register<owner_t>(SLOTS)   owners;
    register<members_t>(SLOTS) contributors;
    register<bit<8>>(SLOTS)    states;  // OVERFLOW; RESEND: the slot's values have gone to the server
    register<bit<48>>(SLOTS)   touched_us;
#ifdef PREEMPTION
    register<bit<8>>(SLOTS)    priorities;
    register<bit<8>>(SLOTS)    kinds;
#endif
#define WORD_REGISTER(name, bits) register<bit<bits>>(SLOTS) sum_##name;
    EACH_WORD(WORD_REGISTER)

    counter(JOBS + 1, CounterType.packets_and_bytes) contribution_new;
    counter(JOBS + 1, CounterType.packets_and_bytes) contribution_duplicate;
    counter(JOBS + 1, CounterType.packets_and_bytes) contribution_collided;
    counter(JOBS + 1, CounterType.packets_and_bytes) contribution_passed;
    counter(JOBS + 1, CounterType.packets_and_bytes) contribution_refused;
    counter(JOBS + 1, CounterType.packets_and_bytes) slot_released;
#ifdef PREEMPTION
    counter(JOBS + 1, CounterType.packets_and_bytes) slot_evicted;
#endif
    counter(JOBS + 1, CounterType.packets_and_bytes) chunk_complete;
    counter(JOBS + 1, CounterType.packets_and_bytes) result_to_all;
    counter(JOBS + 1, CounterType.packets_and_bytes) result_to_one;

    action set_unknown_sender() {
        meta.known = false;
    }

    // The packet comes from a worker, or from a switch below with the values of several workers.
    action from_worker(members_t worker) {
        meta.known = true;
        meta.members = worker;
        hdr.pooled.members = worker;
        hdr.pooled.flags = hdr.pooled.flags & (RESEND | OVERFLOW);
    }

    action from_switch(members_t below) {
        meta.members = hdr.pooled.members;
        meta.known = hdr.pooled.members != 0 && (hdr.pooled.members & ~below) == 0;
    }

    action from_above() {
        meta.known = true;
    }

    // A packet's sender is identified by the port it came in by, never by what the packet says. A server may run at a
    // worker's host.
    table senders {
        key = {
            standard_metadata.ingress_port: exact;
            hdr.aggregation.job: exact;
            meta.is_result: exact;
        }
        actions = { from_worker; from_switch; from_above; set_unknown_sender; }
        const default_action = set_unknown_sender();
        size = 2048;
    }

    action set_unknown_job() {
        meta.job = NO_JOB;
        meta.known = false;
    }

    action set_job(bit<8> job_index, members_t all, port_t parent, bit<16> group) {
        meta.job = (bit<32>)job_index;
        meta.all = all;
        meta.parent = parent;
        meta.group = group;
    }

    table jobs {
        key = { hdr.aggregation.job: exact; }
        actions = { set_job; set_unknown_job; }
        const default_action = set_unknown_job();
        size = JOBS;
    }

    action refuse() {
        contribution_refused.count(meta.job);
        mark_to_drop(standard_metadata);
    }

    action wait() {
        mark_to_drop(standard_metadata);
    }

    action send_up() {
        standard_metadata.egress_spec = meta.parent;
    }

    // Decide what becomes of the slot. A slot is free when a later packet of the job shows that its chunk is done
    // (`oldest`), or when no packet has used it for long, because its job may have ended. A slot whose sum has gone to
    // the server is free for other chunks, but forwards later contributions to its own chunk to the server, because
    // they could never become a whole sum here.
    action record_contribution() {
        owner_t owner;
        members_t present;
        bit<8> state;
        bit<48> touched;
        owners.read(owner, meta.slot);
        contributors.read(present, meta.slot);
        states.read(state, meta.slot);
        touched_us.read(touched, meta.slot);
        bit<48> now = standard_metadata.ingress_global_timestamp;
        owner_t chunk = hdr.aggregation.job ++ hdr.pooled.session ++ hdr.pooled.digest ++ hdr.aggregation.tag;
        bit<32> sessions_ahead = hdr.pooled.session - owner[95:64];
        bit<32> beyond_done = owner[31:0] - hdr.pooled.oldest;
        bool mine = owner == chunk;
        bool done = owner[111:96] == hdr.aggregation.job
                    && ((sessions_ahead != 0 && sessions_ahead[31:31] == 0)
                        || (sessions_ahead == 0 && beyond_done[31:31] == 1));
        bool spent = (state & RESEND) != 0;
        bool free = owner == 0 || (!mine && (done || spent || now - touched > ABANDONED));
        bool again = (hdr.pooled.flags & (RESEND | EVICTED)) != 0;
        bool apart = (present & meta.members) == 0;
        bool within = (meta.members & ~present) == 0;
        meta.claims = free && !again;
        meta.passes = again || (mine && spent);
        meta.adds = mine && !spent && apart && !again;
        meta.repeats = mine && !spent && within && !again;
        meta.merges = mine && !spent && apart && again;
        meta.releases = mine && !spent && again && (apart || within);
        members_t after = meta.claims ? meta.members
                                      : ((meta.adds || meta.merges) ? (present | meta.members) : present);
        bit<8> overflow = (meta.claims ? 8w0 : (state & OVERFLOW))
                                | ((meta.claims || meta.adds || meta.merges) ? (hdr.pooled.flags & OVERFLOW) : 8w0);
        meta.complete = (meta.claims || meta.adds) && after == meta.all;
        bool frees = false;
        bool touches = meta.claims || meta.adds;
#ifdef PREEMPTION
        // A whole sum has been sent to the server, so the slot need not keep it.
        frees = meta.complete;
        bit<8> resident;
        bit<8> kind;
        priorities.read(resident, meta.slot);
        kinds.read(kind, meta.slot);
        bool foreign = !mine && !free && !again;
        meta.evicts = foreign && hdr.pooled.priority > resident;
        priorities.write(meta.slot, (meta.claims || meta.evicts)
                                    ? hdr.pooled.priority
                                    : ((foreign && resident != 0) ? (resident - 1) : resident));
        touches = touches || meta.evicts;
        kinds.write(meta.slot, (meta.claims || meta.evicts) ? hdr.aggregation.kind : kind);
        hdr.aggregation.kind = meta.evicts ? kind : hdr.aggregation.kind;
#endif
        owners.write(meta.slot, frees ? 112w0 : ((meta.claims || meta.evicts) ? chunk : owner));
        contributors.write(meta.slot, meta.releases ? 32w0 : (meta.evicts ? meta.members : after));
        states.write(meta.slot, meta.evicts
                                ? (hdr.pooled.flags & OVERFLOW)
                                : ((meta.releases ? RESEND : (meta.claims ? 8w0 : (state & RESEND))) | overflow));
        touched_us.write(meta.slot, touches ? now : touched);
        if (meta.evicts) {
            hdr.aggregation.job = owner[111:96];
            hdr.aggregation.tag = owner[31:0];
            hdr.aggregation.attempt = 0;
            hdr.pooled.session = owner[95:64];
            hdr.pooled.digest = owner[63:32];
            hdr.pooled.oldest = owner[31:0];
            hdr.pooled.members = present;
            hdr.pooled.flags = EVICTED | state;
        } else if (meta.complete || meta.releases) {
            hdr.pooled.members = after;
            hdr.pooled.flags = hdr.pooled.flags | overflow;
        }
    }

    // The server's answer: the chunk's slot is free, if the chunk still has it.
    action conclude() {
        owner_t owner;
        owners.read(owner, meta.slot);
        bool mine = owner == hdr.aggregation.job ++ hdr.pooled.session ++ hdr.pooled.digest ++ hdr.aggregation.tag;
        owners.write(meta.slot, mine ? 112w0 : owner);
    }

    action to_all() {
        result_to_all.count(meta.job);
        standard_metadata.mcast_grp = meta.group;
    }

    action to_one(port_t port) {
        result_to_one.count(meta.job);
        standard_metadata.egress_spec = port;
    }

    // Send a result that is for one worker out of that worker's port.
    table result_ports {
        key = {
            hdr.aggregation.job: exact;
            hdr.pooled.members: exact;
        }
        actions = { to_one; to_all; }
        const default_action = to_all();
        size = 512;
    }

#define PUT(name, bits) sum_##name.write(meta.slot, hdr.values.name);
    action put_values() {
        EACH_WORD(PUT)
    }

#define ADD(name, bits) \
        bit<bits> so_far_##name; \
        sum_##name.read(so_far_##name, meta.slot); \
        hdr.values.name = LANE_ADD(so_far_##name, hdr.values.name, bits); \
        sum_##name.write(meta.slot, hdr.values.name);
    action add_values() {
        EACH_WORD(ADD)
    }

#define GET(name, bits) sum_##name.read(hdr.values.name, meta.slot);
    action get_values() {
        EACH_WORD(GET)
    }

#ifdef PREEMPTION
#define SWAP(name, bits) \
        bit<bits> evicted_##name; \
        sum_##name.read(evicted_##name, meta.slot); \
        sum_##name.write(meta.slot, hdr.values.name); \
        hdr.values.name = evicted_##name;
    action swap_values() {
        EACH_WORD(SWAP)
    }

    action forward_evicted(bit<8> job_index, port_t parent) {
        slot_evicted.count((bit<32>)job_index);
        standard_metadata.egress_spec = parent;
    }

    // The evicted chunk may belong to a job that has ended at this switch.
    action drop_evicted() {
        slot_evicted.count(NO_JOB);
        mark_to_drop(standard_metadata);
    }

    table evicted {
        key = { hdr.aggregation.job: exact; }
        actions = { forward_evicted; drop_evicted; }
        const default_action = drop_evicted();
        size = JOBS;
    }
#endif

    apply {
        bit<8> kind = hdr.aggregation.kind & ~RESULT;
        meta.is_result = hdr.aggregation.kind[7:7];
        meta.slot = (bit<32>)hdr.aggregation.slot;
        jobs.apply();
        if (meta.job != NO_JOB) {
            senders.apply();
        }
        if (!meta.known
            || standard_metadata.parser_error != error.NoError
            || standard_metadata.checksum_error == 1
            || hdr.aggregation.version != VERSION
            || !hdr.pooled.isValid()
            || (kind == MISMATCH && meta.is_result == 0)
            || meta.slot >= SLOTS
            || hdr.pooled.session == 0
            || hdr.pooled.zero != 0
            || hdr.ipv4.total_len != (hdr.values.isValid() ? VALUES_LENGTH : HEADERS_LENGTH)
            || hdr.udp.len + 20 != hdr.ipv4.total_len) {
            refuse();
        } else if (meta.is_result == 1) {
            conclude();
            result_ports.apply();
        } else if (kind == FLOAT32) {
            contribution_passed.count(meta.job);
            send_up();
        } else {
            record_contribution();
            if (meta.repeats) {
                contribution_duplicate.count(meta.job);
                wait();
            } else if (meta.claims || meta.adds) {
                contribution_new.count(meta.job);
                if (meta.claims) {
                    put_values();
                } else {
                    add_values();
                }
                if (meta.complete) {
                    chunk_complete.count(meta.job);
                    send_up();
                } else {
                    wait();
                }
            } else if (meta.releases) {
                slot_released.count(meta.job);
                if (meta.merges) {
                    add_values();
                } else {
                    get_values();
                }
                send_up();
            } else if (meta.passes) {
                contribution_passed.count(meta.job);
                send_up();
#ifdef PREEMPTION
            } else if (meta.evicts) {
                contribution_new.count(meta.job);
                swap_values();
                evicted.apply();
#endif
            } else {
                contribution_collided.count(meta.job);
                hdr.pooled.flags = hdr.pooled.flags | COLLISION;
                send_up();
            }
        }
    }
}

control PoolingIngress(inout headers_t hdr, inout metadata_t meta,
                       inout standard_metadata_t standard_metadata) {
    Pooling() pooling;
    Forwarding() forwarding;

    apply {
        if (hdr.aggregation.isValid()) {
            pooling.apply(hdr, meta, standard_metadata);
        } else {
            forwarding.apply(hdr, meta, standard_metadata);
        }
    }
}

control PoolingEgress(inout headers_t hdr, inout metadata_t meta,
                      inout standard_metadata_t standard_metadata) {
    PhantomQueue() queue;

    bit<32> ns_per_byte = 0;

    action drop() {
        mark_to_drop(standard_metadata);
    }

    action to_receiver(mac_t mac, ipv4_t address, bit<16> udp_port) {
        hdr.ethernet.src = AGGREGATOR_MAC;
        hdr.ethernet.dst = mac;
        hdr.ipv4.src = AGGREGATOR_IPV4;
        hdr.ipv4.dst = address;
        hdr.ipv4.ttl = 64;
        hdr.udp.src_port = AGGREGATOR_PORT;
        hdr.udp.dst_port = udp_port;
        meta.rewritten = true;
    }

    // The port that a packet leaves by identifies its receiver: the switch learns no address from a packet.
    table receivers {
        key = {
            standard_metadata.egress_port: exact;
            hdr.aggregation.job: exact;
            meta.is_result: exact;
        }
        actions = { to_receiver; drop; }
        const default_action = drop();
        size = 2048;
    }

    action set_link_rate(bit<32> ns) {
        ns_per_byte = ns;
    }

    // The links that have a limited rate.
    table links {
        key = { standard_metadata.egress_port: exact; }
        actions = { set_link_rate; NoAction; }
        default_action = NoAction();
        size = 512;
    }

    apply {
        if (hdr.aggregation.isValid()) {
            receivers.apply();
            links.apply();
            if (ns_per_byte != 0) {
                queue.apply(standard_metadata.egress_port, standard_metadata.egress_global_timestamp,
                            standard_metadata.packet_length, ns_per_byte, meta.wait_ns);
                if (meta.wait_ns > MARK_NS) {
                    hdr.pooled.flags = hdr.pooled.flags | CONGESTED;
                }
            }
        } else if (standard_metadata.instance_type == INSTANCE_REPLICATION
                   && standard_metadata.egress_port == standard_metadata.ingress_port) {
            drop();  // a flooded frame does not return to the port it came from
        }
    }
}

control PoolingComputeChecksum(inout headers_t hdr, inout metadata_t meta) {
    apply {
        update_checksum(meta.rewritten && hdr.ipv4.isValid() && hdr.ipv4.ihl == 5,
            IPV4_CHECKED, hdr.ipv4.checksum, HashAlgorithm.csum16);
        update_checksum(meta.rewritten && hdr.aggregation.isValid(),
            UDP_CHECKED, hdr.udp.checksum, HashAlgorithm.csum16);
    }
}

control PoolingDeparser(packet_out packet, in headers_t hdr) {
    apply {
        packet.emit(hdr.ethernet);
        packet.emit(hdr.tags);
        packet.emit(hdr.ipv4);
        packet.emit(hdr.ipv6);
        packet.emit(hdr.udp);
        packet.emit(hdr.aggregation);
        packet.emit(hdr.pooled);
        packet.emit(hdr.values);
    }
}

V1Switch(PoolingParser(), PoolingVerifyChecksum(), PoolingIngress(), PoolingEgress(),
         PoolingComputeChecksum(), PoolingDeparser()) main;

#endif
