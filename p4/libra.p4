// Libra (systems/libra/README.md): workers send what they push to the switch, which passes it to the server that has the
// keys. The workers' values of a group of hot keys are summed on the way, so that one packet of them all reaches the
// server; and what a server answers to all workers of a rack is copied here.
// Compile-time parameters: LANES (keys of a group), SLOTS (groups of all jobs).
//
// A switch sums what the workers at its own ports push. Whatever it does not sum it passes on, and the server counts
// each worker once: a switch that has lost its tables or registers costs time and no sum. All state lives in ingress,
// and each register is read, changed and written within one action, as BMv2 locks registers for one action at a time.
#include <core.p4>
#include <v1model.p4>

#include "include/lanes.p4"
#include "include/lower_headers.p4"
#include "include/udp.p4"

#define VERSION 1

const bit<8> HOT        = 0x60;
const bit<8> PUSH       = 0x61;
const bit<8> PULL       = 0x62;
const bit<8> LEARN      = 0x63;
const bit<8> SUM        = 0x64;
const bit<8> HOT_RESULT = 0x68;

header libra_t {
    bit<8>  version;
    bit<8>  kind;
    bit<16> job;
    bit<32> session;
    bit<32> round;
    bit<32> digest;
    bit<32> item;
    bit<32> items;
    bit<16> pairs;
    bit<8>  server;
    bit<8>  attempt;
    bit<64> workers;
}

// LANES keys of 64 bits, which the switch does not read, and LANES values.
#define KEY_FIELD(name, bits) bit<bits> first_##name; bit<bits> second_##name;
header keys_t {
    EACH_WORD(KEY_FIELD)
}

header values_t {
    EACH_WORD(WORD_FIELD)
}

struct headers_t {
    ethernet_t      ethernet;
    tag_t[MAX_TAGS] tags;
    ipv4_h          ipv4;
    ipv6_h          ipv6;
    udp_t           udp;
    libra_t         libra;
    keys_t          keys;
    values_t        values;
}

// RFC 768's pseudo header, the headers and what was read of the rest. A header that is not valid adds nothing.
#define KEY_CHECKED(name, bits) , hdr.keys.first_##name, hdr.keys.second_##name
#define UDP_CHECKED \
    { hdr.ipv4.src, hdr.ipv4.dst, 8w0, hdr.ipv4.protocol, hdr.udp.len, \
      hdr.udp.src_port, hdr.udp.dst_port, hdr.udp.len, \
      hdr.libra.version, hdr.libra.kind, hdr.libra.job, hdr.libra.session, hdr.libra.round, hdr.libra.digest, \
      hdr.libra.item, hdr.libra.items, hdr.libra.pairs, hdr.libra.server, hdr.libra.attempt, hdr.libra.workers \
      EACH_WORD(KEY_CHECKED) EACH_WORD(WORD_CHECKED) }

typedef bit<64> workers_t;  // one bit for each worker, by rank

struct metadata_t {
    bit<32>   job;
    workers_t worker;       // the sender's bit; 0: it is no worker of the job
    workers_t all_workers;  // the bits of all workers at this switch
    ipv4_t    address;      // the sender's IPv4 address
    bool      known;        // the job has the server that the packet names
    bit<32>   first_slot;
    bit<32>   slots;
    bit<32>   servers;
    bit<32>   place;        // the group's index among the job's slots
    bit<32>   cell;
    bool      stale;
    bool      other;        // the packet has the cell's round, but another shape
    workers_t before;       // the workers that contributed before this packet
    workers_t after;
    bool      copied;       // the packet is a result that is copied to all workers here
    bit<16>   zero;         // always 0: csum16 of a packet whose UDP checksum is 0xffff
    bool      rewritten;    // the IPv4 header changed; otherwise its checksum is left as it came
}

#include "include/lower_layers.p4"
#include "include/forwarding.p4"
#include "include/slots.p4"

#define CELLS SLOTS
const bool SLOTS_FIT = static_assert(SLOTS >= 1 && SLOTS <= 2097152,
                                     "SLOTS must be 1 to 2097152 (100,000 keys of one lane for each of 16 jobs)");

const bit<16> HEADERS_LENGTH = 20 + 8 + 36;
const bit<16> HOT_LENGTH = HEADERS_LENGTH + 12 * LANES;
const bit<16> RESULT_LENGTH = HEADERS_LENGTH + 4 * LANES;

parser LibraParser(packet_in packet, out headers_t hdr, inout metadata_t meta,
                   inout standard_metadata_t standard_metadata) {
    LowerLayers() lower_layers;

    state start {
        lower_layers.apply(packet, hdr);
        // Only untagged frames of type IPv4, without options or fragments. Of the packets between hosts, only those are
        // parsed further that are as long as a result for all, so that no other packet ends with an error.
        transition select(hdr.ethernet.ethertype, hdr.ipv4.dst, hdr.ipv4.protocol, hdr.ipv4.version,
                          hdr.ipv4.ihl, hdr.ipv4.more_fragments, hdr.ipv4.fragment_offset,
                          hdr.ipv4.total_len) {
            (ETHERTYPE_IPV4, AGGREGATOR_IPV4, PROTOCOL_UDP, 4, 5, 0, 0, _): parse_udp;
            (ETHERTYPE_IPV4, _, PROTOCOL_UDP, 4, 5, 0, 0, RESULT_LENGTH): parse_udp;
            default: accept;
        }
    }

    state parse_udp {
        packet.extract(hdr.udp);
        transition select(hdr.udp.dst_port) {
            AGGREGATOR_PORT: parse_libra;
            default: accept;
        }
    }

    state parse_libra {
        packet.extract(hdr.libra);
        transition select(hdr.libra.kind, hdr.libra.pairs) {
            (HOT, LANES): parse_group;
            default: accept;
        }
    }

    state parse_group {
        packet.extract(hdr.keys);
        packet.extract(hdr.values);
        transition accept;
    }
}

control LibraVerifyChecksum(inout headers_t hdr, inout metadata_t meta) {
    apply {
        verify_checksum(hdr.ipv4.isValid() && hdr.ipv4.ihl == 5,
            IPV4_CHECKED, hdr.ipv4.checksum, HashAlgorithm.csum16);
        // 0: the sender computed none. 0xffff stands for a checksum of 0 (RFC 768), for which csum16 returns 0.
        verify_checksum_with_payload(hdr.libra.isValid() && hdr.udp.checksum != 0
                                     && hdr.udp.checksum != 0xffff,
            UDP_CHECKED, hdr.udp.checksum, HashAlgorithm.csum16);
        verify_checksum_with_payload(hdr.libra.isValid() && hdr.udp.checksum == 0xffff,
            UDP_CHECKED, meta.zero, HashAlgorithm.csum16);
    }
}

// Handles packets that are addressed to the aggregator.
control Requests(inout headers_t hdr, inout metadata_t meta,
                 inout standard_metadata_t standard_metadata) {
    register<bit<64>>(SLOTS)   rounds;
    register<bit<32>>(SLOTS)   digests;
    register<workers_t>(SLOTS) contributors;
    EACH_WORD(SUM_REGISTER)

    counter(JOBS + 1, CounterType.packets_and_bytes) hot_new;
    counter(JOBS + 1, CounterType.packets_and_bytes) hot_duplicate;
    counter(JOBS + 1, CounterType.packets_and_bytes) hot_passed;
    counter(JOBS + 1, CounterType.packets_and_bytes) passed;
    counter(JOBS + 1, CounterType.packets_and_bytes) refused;
    counter(JOBS + 1, CounterType.packets_and_bytes) group_complete;
    counter(JOBS + 1, CounterType.packets_and_bytes) sum_repeated;

    action set_unknown_sender() {
        meta.job = NO_JOB;
        meta.worker = 0;
    }

    action contribute(bit<8> job_index, workers_t worker, workers_t all_workers, ipv4_t address) {
        meta.job = (bit<32>)job_index;
        meta.worker = worker;
        meta.all_workers = all_workers;
        meta.address = address;
    }

    // A packet's sender is identified by the port it came in by, and its address must be that worker's.
    table members {
        key = {
            standard_metadata.ingress_port: exact;
            hdr.libra.job: exact;
        }
        actions = { contribute; set_unknown_sender; }
        const default_action = set_unknown_sender();
        size = 1024;
    }

    action set_unknown_server() {
        meta.known = false;
    }

    action to_server(mac_t mac, ipv4_t address, bit<16> udp_port, port_t port, bit<32> first_slot,
                     bit<32> slots, bit<32> server_count) {
        meta.known = true;
        meta.first_slot = first_slot;
        meta.slots = slots;
        meta.servers = server_count;
        meta.place = hdr.libra.item * server_count + (bit<32>)hdr.libra.server;
        meta.cell = first_slot + meta.place;
        hdr.ethernet.dst = mac;
        hdr.ipv4.dst = address;
        hdr.udp.dst_port = udp_port;
        meta.rewritten = true;
        standard_metadata.egress_spec = port;
    }

    table servers {
        key = {
            hdr.libra.job: exact;
            hdr.libra.server: exact;
        }
        actions = { to_server; set_unknown_server; }
        const default_action = set_unknown_server();
        size = 4096;
    }

    action refuse() {
        refused.count(meta.job);
        mark_to_drop(standard_metadata);
    }

    action record_contribution() {
        bit<64> round;
        bit<32> shape;
        workers_t present;
        rounds.read(round, meta.cell);
        digests.read(shape, meta.cell);
        contributors.read(present, meta.cell);
        bit<64> own = hdr.libra.session ++ hdr.libra.round;
        bit<64> ahead = own - round;
        bool used = present != 0;  // a cell that nobody ever contributed to has no round to compare with
        meta.stale = used && ahead[63:63] == 1;
        bool fresh = !used || (ahead != 0 && !meta.stale);
        meta.other = !fresh && !meta.stale && hdr.libra.digest != shape;
        meta.before = fresh ? 0 : present;
        meta.after = meta.stale || meta.other ? present : meta.before | meta.worker;
        rounds.write(meta.cell, meta.stale ? round : own);
        digests.write(meta.cell, fresh ? hdr.libra.digest : shape);
        contributors.write(meta.cell, meta.after);
    }

    action put_values() {
        EACH_WORD(PUT)
    }

    action add_values() {
        EACH_WORD(ADD)
    }

    // Whatever values the packet brought, it leaves with those of the cell.
    action get_values() {
        EACH_WORD(GET)
    }

    action set_all_contributed() {
        hdr.libra.kind = SUM;
        hdr.libra.workers = meta.all_workers;
    }

    action wait() {
        mark_to_drop(standard_metadata);
    }

    apply {
        members.apply();
        servers.apply();
        bool hot = hdr.values.isValid();
        if (meta.worker == 0 || hdr.ipv4.src != meta.address || !meta.known
            || standard_metadata.parser_error != error.NoError
            || standard_metadata.checksum_error == 1
            || hdr.libra.version != VERSION
            || hdr.libra.workers != 0
            || hdr.udp.len + 20 != hdr.ipv4.total_len
            || (!hot && hdr.libra.kind != PUSH && hdr.libra.kind != PULL && hdr.libra.kind != LEARN)
            || (hot && (hdr.ipv4.total_len != HOT_LENGTH || hdr.libra.item >= SLOTS
                        || meta.place >= meta.slots || meta.cell >= SLOTS))) {
            refuse();
        } else if (!hot) {
            passed.count(meta.job);
        } else {
            record_contribution();
            if (meta.stale || meta.other) {
                hot_passed.count(meta.job);  // only the server knows the state of its round
            } else if ((meta.before & meta.worker) == 0) {
                hot_new.count(meta.job);
                if (meta.before == 0) {
                    put_values();
                } else {
                    add_values();
                }
                if (meta.after != meta.all_workers) {
                    wait();
                } else {
                    group_complete.count(meta.job);
                    set_all_contributed();
                }
            } else {
                hot_duplicate.count(meta.job);
                if (meta.before != meta.all_workers) {
                    wait();
                } else {
                    sum_repeated.count(meta.job);
                    get_values();
                    set_all_contributed();
                }
            }
        }
    }
}

// A server sends what is for all workers at this switch to one of them, at the aggregator's port.
control Results(inout headers_t hdr, inout metadata_t meta,
                inout standard_metadata_t standard_metadata) {
    counter(JOBS + 1, CounterType.packets_and_bytes) result_copied;

    action copy(bit<8> job_index, bit<16> group) {
        meta.copied = true;
        standard_metadata.mcast_grp = group;
        result_copied.count((bit<32>)job_index);
    }

    // The server is identified by its ingress port: no other host can use its address there.
    table groups {
        key = {
            standard_metadata.ingress_port: exact;
            hdr.ipv4.src: exact;
            hdr.ipv4.dst: exact;
            hdr.libra.job: exact;
        }
        actions = { copy; NoAction; }
        const default_action = NoAction();
        size = 4096;
    }

    apply {
        groups.apply();
    }
}

control LibraIngress(inout headers_t hdr, inout metadata_t meta,
                     inout standard_metadata_t standard_metadata) {
    Requests() requests;
    Results() results;
    Forwarding() forwarding;

    apply {
        if (hdr.libra.isValid() && hdr.ipv4.dst == AGGREGATOR_IPV4) {
            requests.apply(hdr, meta, standard_metadata);
        } else {
            if (hdr.libra.isValid() && hdr.libra.kind == HOT_RESULT
                && standard_metadata.parser_error == error.NoError
                && standard_metadata.checksum_error == 0) {
                results.apply(hdr, meta, standard_metadata);
            }
            if (!meta.copied) {
                forwarding.apply(hdr, meta, standard_metadata);
            }
        }
    }
}

control LibraEgress(inout headers_t hdr, inout metadata_t meta,
                    inout standard_metadata_t standard_metadata) {
    action drop() {
        mark_to_drop(standard_metadata);
    }

    action to_worker(mac_t mac, ipv4_t address, bit<16> udp_port) {
        hdr.ethernet.dst = mac;
        hdr.ipv4.dst = address;
        hdr.udp.dst_port = udp_port;
        meta.rewritten = true;
    }

    table receivers {
        key = {
            standard_metadata.egress_port: exact;
            hdr.libra.job: exact;
        }
        actions = { to_worker; drop; }
        const default_action = drop();
        size = 1024;
    }

    apply {
        if (meta.copied) {
            receivers.apply();
        } else if (standard_metadata.instance_type == INSTANCE_REPLICATION
                   && standard_metadata.egress_port == standard_metadata.ingress_port) {
            drop();  // a flooded frame does not return to the port it came from
        }
    }
}

control LibraComputeChecksum(inout headers_t hdr, inout metadata_t meta) {
    apply {
        update_checksum(meta.rewritten && hdr.ipv4.isValid() && hdr.ipv4.ihl == 5,
            IPV4_CHECKED, hdr.ipv4.checksum, HashAlgorithm.csum16);
        update_checksum_with_payload(meta.rewritten && hdr.libra.isValid(),
            UDP_CHECKED, hdr.udp.checksum, HashAlgorithm.csum16);
    }
}

control LibraDeparser(packet_out packet, in headers_t hdr) {
    apply {
        packet.emit(hdr.ethernet);
        packet.emit(hdr.tags);
        packet.emit(hdr.ipv4);
        packet.emit(hdr.ipv6);
        packet.emit(hdr.udp);
        packet.emit(hdr.libra);
        packet.emit(hdr.keys);
        packet.emit(hdr.values);
    }
}

V1Switch(LibraParser(), LibraVerifyChecksum(), LibraIngress(), LibraEgress(),
         LibraComputeChecksum(), LibraDeparser()) main;
