// MLfabric-style aggregation on the way to a server (systems/mlfabric/README.md). If the scheduler grants several updates
// together, their packets of one chunk are summed here, and one packet with the sum goes on to the server. The packets
// say which workers take part, as the scheduler granted it. No result depends on the switch: if the sum lacks values,
// because a packet was lost or the cell was needed for another chunk, the server asks the workers for them.
// Compile-time parameters: LANES (values a packet carries), SLOTS (cells of all jobs).
//
// All state lives in ingress, and each register is read, changed and written within one action, as BMv2 locks registers
// for one action at a time.
#include <core.p4>
#include <v1model.p4>

#include "include/lanes.p4"
#include "include/lower_headers.p4"

const bit<8>  PROTOCOL_UDP = 17;
const bit<16> SERVER_PORTS = 0xb000;  // to 0xb0ff
const bit<8>  VERSION      = 1;
const bit<8>  SUMMED       = 0x55;

typedef bit<32> workers_t;  // one bit for each worker

header udp_t {
    bit<16> src_port;
    bit<16> dst_port;
    bit<16> len;
    bit<16> checksum;
}

header message_t {
    bit<8>  version;
    bit<8>  kind;
    bit<16> job;
    bit<32> session;
    bit<16> round;
    bit<8>  epoch;
    bit<8>  attempt;
    bit<32> incarnation;
    bit<32> number;
}

header push_t {
    bit<32>   group;
    workers_t members;  // the workers that have values in the chunk
    workers_t present;  // those of them whose values are in the packet
    bit<16>   cell;
    bit<16>   chunk;
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
    message_t       message;
    push_t          push;
    values_t        values;
}

struct metadata_t {
    bit<32>   job;
    workers_t worker;     // the sender's bit; 0: it is no worker that reaches its server by this port
    bit<16>   first_cell;
    bit<16>   cells;
    bit<32>   cell;
    bool      stale;
    bool      fresh;      // the packet is the first of another chunk: it overwrites the cell
    bool      other;      // the packet has the cell's chunk, but other members
    bool      waits;      // the cell waits for the values of other workers
    workers_t before;     // the workers whose values came before this packet
    workers_t after;
    bit<16>   zero;       // always 0: csum16 of a packet whose UDP checksum is 0xffff
    bool      summed;     // the packet leaves with other workers' values
}

#include "include/lower_layers.p4"
#include "include/forwarding.p4"
#include "include/slots.p4"

#define CELLS SLOTS
const bool SLOTS_FIT = static_assert(SLOTS >= 1 && SLOTS <= 65535,
                                     "SLOTS must be 1 to 65535 (cells are named by 16 bits)");

const bit<16> PUSH_LENGTH = 20 + 8 + 20 + 16 + 4 * LANES;

#define UDP_CHECKED { \
      hdr.ipv4.src, hdr.ipv4.dst, 8w0, hdr.ipv4.protocol, hdr.udp.len, \
      hdr.udp.src_port, hdr.udp.dst_port, hdr.udp.len, \
      hdr.message.version, hdr.message.kind, hdr.message.job, hdr.message.session, hdr.message.round, \
      hdr.message.epoch, hdr.message.attempt, hdr.message.incarnation, hdr.message.number, \
      hdr.push.group, hdr.push.members, hdr.push.present, hdr.push.cell, hdr.push.chunk \
      EACH_WORD(WORD_CHECKED) }

parser MlfabricParser(packet_in packet, out headers_t hdr, inout metadata_t meta,
                      inout standard_metadata_t standard_metadata) {
    LowerLayers() lower_layers;

    // Only packets that are exactly as long as a push are parsed further, so that no other ends with an error.
    state start {
        lower_layers.apply(packet, hdr);
        transition select(hdr.ethernet.ethertype, hdr.ipv4.protocol, hdr.ipv4.version, hdr.ipv4.ihl,
                          hdr.ipv4.more_fragments, hdr.ipv4.fragment_offset, hdr.ipv4.total_len) {
            (ETHERTYPE_IPV4, PROTOCOL_UDP, 4, 5, 0, 0, PUSH_LENGTH): parse_udp;
            default: accept;
        }
    }

    state parse_udp {
        packet.extract(hdr.udp);
        transition select(hdr.udp.dst_port) {
            SERVER_PORTS &&& 0xff00: parse_message;
            default: accept;
        }
    }

    state parse_message {
        packet.extract(hdr.message);
        transition select(hdr.message.kind) {
            SUMMED: parse_push;
            default: accept;
        }
    }

    state parse_push {
        packet.extract(hdr.push);
        packet.extract(hdr.values);
        transition accept;
    }
}

control MlfabricVerifyChecksum(inout headers_t hdr, inout metadata_t meta) {
    apply {
        verify_checksum(hdr.push.isValid(), IPV4_CHECKED, hdr.ipv4.checksum, HashAlgorithm.csum16);
        // 0: the sender computed none. 0xffff stands for a checksum of 0 (RFC 768), for which csum16 returns 0.
        verify_checksum(hdr.push.isValid() && hdr.udp.checksum != 0 && hdr.udp.checksum != 0xffff,
            UDP_CHECKED, hdr.udp.checksum, HashAlgorithm.csum16);
        verify_checksum(hdr.push.isValid() && hdr.udp.checksum == 0xffff,
            UDP_CHECKED, meta.zero, HashAlgorithm.csum16);
    }
}

// Handles a worker's values for a chunk to which other workers contribute too.
control Aggregation(inout headers_t hdr, inout metadata_t meta,
                    inout standard_metadata_t standard_metadata) {
    register<bit<32>>(SLOTS)   groups;
    register<bit<16>>(SLOTS)   chunks;
    register<workers_t>(SLOTS) wanted;
    register<workers_t>(SLOTS) contributors;
    EACH_WORD(SUM_REGISTER)

    counter(JOBS, CounterType.packets_and_bytes) push_new;
    counter(JOBS, CounterType.packets_and_bytes) push_duplicate;
    counter(JOBS, CounterType.packets_and_bytes) push_stale;
    counter(JOBS, CounterType.packets_and_bytes) push_refused;
    counter(JOBS, CounterType.packets_and_bytes) chunk_complete;

    action contribute(bit<8> job_index, workers_t worker, bit<16> first_cell, bit<16> cells) {
        meta.job = (bit<32>)job_index;
        meta.worker = worker;
        meta.first_cell = first_cell;
        meta.cells = cells;
        meta.cell = (bit<32>)hdr.push.cell;
    }

    // Workers of jobs whose server is at this switch, by the port through which their path comes in: the switch below
    // has already made sure that nobody else uses their address.
    table members {
        key = {
            standard_metadata.ingress_port: exact;
            hdr.ipv4.src: exact;
            hdr.ipv4.dst: exact;
            hdr.udp.dst_port: exact;
            hdr.message.job: exact;
        }
        actions = { contribute; NoAction; }
        default_action = NoAction();
        size = 1024;
    }

    action refuse() {
        push_refused.count(meta.job);
        mark_to_drop(standard_metadata);
        meta.waits = true;
    }

    action wait() {
        mark_to_drop(standard_metadata);
        meta.waits = true;
    }

    action record_contribution() {
        bit<32> group;
        bit<16> chunk;
        workers_t together;
        workers_t present;
        groups.read(group, meta.cell);
        chunks.read(chunk, meta.cell);
        wanted.read(together, meta.cell);
        contributors.read(present, meta.cell);
        bit<32> ahead = hdr.push.group - group;
        bool used = present != 0;  // a cell that nobody ever contributed to has no group to compare with
        meta.stale = used && ahead[31:31] == 1;
        meta.fresh = !used || (!meta.stale && (ahead != 0 || chunk != hdr.push.chunk));
        meta.other = !meta.fresh && !meta.stale && together != hdr.push.members;
        meta.before = meta.fresh ? 0 : present;
        meta.after = meta.stale || meta.other ? present : meta.before | meta.worker;
        groups.write(meta.cell, meta.stale ? group : hdr.push.group);
        chunks.write(meta.cell, meta.fresh ? hdr.push.chunk : chunk);
        wanted.write(meta.cell, meta.fresh ? hdr.push.members : together);
        contributors.write(meta.cell, meta.after);
    }

    action put_values() {
        EACH_WORD(PUT)
    }

    action add_values() {
        EACH_WORD(ADD)
    }

    action forward_complete_chunk() {
        chunk_complete.count(meta.job);
        hdr.push.present = hdr.push.members;
        meta.summed = true;
    }

    apply {
        members.apply();
        if (meta.worker != 0) {
            if (standard_metadata.checksum_error == 1
                || hdr.message.version != VERSION
                || hdr.udp.len + 20 != hdr.ipv4.total_len
                || hdr.push.present != meta.worker
                || (hdr.push.members & meta.worker) == 0
                || hdr.push.cell - meta.first_cell >= meta.cells
                || meta.cell >= SLOTS) {
                refuse();
            } else {
                record_contribution();
                if (meta.stale) {
                    push_stale.count(meta.job);
                    wait();
                } else if (meta.other) {
                    refuse();
                } else if ((meta.before & meta.worker) != 0) {
                    push_duplicate.count(meta.job);
                    wait();
                } else {
                    push_new.count(meta.job);
                    if (meta.before == 0) {
                        put_values();
                    } else {
                        add_values();
                    }
                    if (meta.after == hdr.push.members) {
                        forward_complete_chunk();
                    } else {
                        wait();
                    }
                }
            }
        }
    }
}

control MlfabricIngress(inout headers_t hdr, inout metadata_t meta,
                        inout standard_metadata_t standard_metadata) {
    Aggregation() aggregation;
    Forwarding() forwarding;

    apply {
        if (hdr.push.isValid() && standard_metadata.parser_error == error.NoError) {
            aggregation.apply(hdr, meta, standard_metadata);
        }
        if (!meta.waits) {
            forwarding.apply(hdr, meta, standard_metadata);
        }
    }
}

control MlfabricEgress(inout headers_t hdr, inout metadata_t meta,
                       inout standard_metadata_t standard_metadata) {
    apply {
        if (standard_metadata.instance_type == INSTANCE_REPLICATION
            && standard_metadata.egress_port == standard_metadata.ingress_port) {
            mark_to_drop(standard_metadata);  // a flooded frame does not return to the port it came from
        }
    }
}

control MlfabricComputeChecksum(inout headers_t hdr, inout metadata_t meta) {
    apply {
        update_checksum(meta.summed && hdr.push.isValid(),
            UDP_CHECKED, hdr.udp.checksum, HashAlgorithm.csum16);
    }
}

control MlfabricDeparser(packet_out packet, in headers_t hdr) {
    apply {
        packet.emit(hdr.ethernet);
        packet.emit(hdr.tags);
        packet.emit(hdr.ipv4);
        packet.emit(hdr.ipv6);
        packet.emit(hdr.udp);
        packet.emit(hdr.message);
        packet.emit(hdr.push);
        packet.emit(hdr.values);
    }
}

V1Switch(MlfabricParser(), MlfabricVerifyChecksum(), MlfabricIngress(), MlfabricEgress(),
         MlfabricComputeChecksum(), MlfabricDeparser()) main;
