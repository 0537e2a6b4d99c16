// A pool of slots that all jobs share, with a server for what finds no slot: the body of atp.p4 and esa.p4. Before they
// include it they define the control Slots, which says what becomes of the slot that a packet names.
//
// The first contribution to a chunk claims the slot that its sender chose by a hash; those that follow are added to it.
// A whole sum goes to the job's server, whose answer frees the slot on its way to the workers. A packet that finds
// another chunk in the slot goes to the server alone. A contribution that is sent again takes along what the slot holds
// of its chunk. A packet says which workers' values it has (`members`), so that the server adds each of them once.
// Compile-time parameters: LANES (values a packet carries), SLOTS (slots of the switch), MARK_US
// (packets that would wait longer for a link are marked), ABANDONED_US (a slot that nobody touched for longer is free).
#ifndef POOLING_P4
#define POOLING_P4

#include "udp_layers.p4"
#include "forwarding.p4"
#include "checksums.p4"
#include "phantom_queue.p4"

#ifndef MARK_US
#define MARK_US 2000
#endif
const bit<64> MARK_NS = MARK_US * 1000;  // packets are marked that would wait longer for a link

const bit<16> HEADERS_LENGTH = 20 + 8 + 12 + 20;
const bit<16> VALUES_LENGTH = HEADERS_LENGTH + 4 * LANES;

parser PoolingParser(packet_in packet, out headers_t hdr, inout metadata_t meta,
                     inout standard_metadata_t standard_metadata) {
    UdpLayers() udp_layers;
    bit<16> port;

    state start {
        udp_layers.apply(packet, hdr, port);
        transition select(port) {
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

// Handles one packet of a job, from its fully parsed header to the decision where it goes.
control Pooling(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    Slots() slots;

    counter(JOBS + 1, CounterType.packets_and_bytes) contribution_new;
    counter(JOBS + 1, CounterType.packets_and_bytes) contribution_duplicate;
    counter(JOBS + 1, CounterType.packets_and_bytes) contribution_collided;
    counter(JOBS + 1, CounterType.packets_and_bytes) contribution_passed;
    counter(JOBS + 1, CounterType.packets_and_bytes) contribution_refused;
    counter(JOBS + 1, CounterType.packets_and_bytes) slot_released;
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

    apply {
        bit<8> kind = hdr.aggregation.kind & ~RESULT;
        meta.is_result = hdr.aggregation.kind[7:7];
        meta.cell = (bit<32>)hdr.aggregation.slot;
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
            || meta.cell >= CELLS
            || hdr.pooled.session == 0
            || hdr.pooled.zero != 0
            || hdr.ipv4.total_len != (hdr.values.isValid() ? VALUES_LENGTH : HEADERS_LENGTH)
            || hdr.udp.len + 20 != hdr.ipv4.total_len) {
            refuse();
        } else if (meta.is_result == 0 && kind == FLOAT32) {
            contribution_passed.count(meta.job);
            send_up();
        } else {
            slots.apply(hdr, meta, standard_metadata);
            if (meta.is_result == 1) {
                result_ports.apply();
            } else if (meta.repeats) {
                contribution_duplicate.count(meta.job);
                wait();
            } else if (meta.claims || meta.adds) {
                contribution_new.count(meta.job);
                if (meta.complete) {
                    chunk_complete.count(meta.job);
                    send_up();
                } else {
                    wait();
                }
            } else if (meta.releases) {
                slot_released.count(meta.job);
                send_up();
            } else if (meta.passes) {
                contribution_passed.count(meta.job);
                send_up();
            } else if (meta.evicts) {
                contribution_new.count(meta.job);  // what the slot held is on its way to its server
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

V1Switch(PoolingParser(), VerifyChecksums(), PoolingIngress(), PoolingEgress(),
         ComputeChecksums(), PoolingDeparser()) main;

#endif
