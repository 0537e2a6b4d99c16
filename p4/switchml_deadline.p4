// switchml.p4 for sums that do not wait for everybody (docs/partial-sums.md). v1model has no timers: a chunk whose
// first contribution came at least DEADLINE ago is closed by the next contribution to it, which waiting workers repeat.
// An OPENING always waits for all workers. Compile-time parameters: LANES, SLOTS, and those of include/presence.p4.
//
// A worker that contributes to a tag has the result of the tag before. As long as a worker may still lack the result
// that a cell holds, the cell is kept, and contributions that would take its place are dropped. So no worker is
// ever SETS tags behind another one, and each can fetch the results that it missed.
#include <core.p4>
#include <v1model.p4>

#include "include/headers.p4"
#include "include/presence.p4"

struct headers_t {
    ethernet_t      ethernet;
    tag_t[MAX_TAGS] tags;
    ipv4_h          ipv4;
    ipv6_h          ipv6;
    udp_t           udp;
    aggregation_t   aggregation;
    presence_t      presence;
    opening_t       opening;
    values_t        values;
}

#define UDP_CHECKED { HEADERS_CHECKED, hdr.presence.workers, BODY_CHECKED }

#include "include/metadata.p4"
#include "include/udp_layers.p4"
#include "include/forwarding.p4"
#include "include/checksums.p4"
#include "include/sender.p4"
#include "include/sums.p4"
#include "include/switchml_egress.p4"

parser SwitchmlParser(packet_in packet, out headers_t hdr, inout metadata_t meta,
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

    state parse_aggregation {
        packet.extract(hdr.aggregation);
        packet.extract(hdr.presence);
        transition select(hdr.aggregation.kind & ~RESULT) {
            OPENING: parse_opening;
            INT32: parse_values;
            SCALED: parse_values;
            default: accept;
        }
    }

    state parse_opening {
        packet.extract(hdr.opening);
        meta.right_length = OPENING_LENGTH + PRESENCE_LENGTH;
        transition accept;
    }

    state parse_values {
        packet.extract(hdr.values);
        meta.right_length = VALUES_LENGTH + PRESENCE_LENGTH;
        transition accept;
    }
}

// As in include/aggregation.p4, and closes chunks.
control Aggregation(inout headers_t hdr, inout metadata_t meta,
                    inout standard_metadata_t standard_metadata) {
    register<bit<32>>(CELLS)   tags;
    register<bit<8>>(CELLS)    kinds;
    register<workers_t>(CELLS) contributors;
    register<bit<1>>(CELLS)    finals;
    register<bit<48>>(CELLS)   begun;     // when the first contribution came, in microseconds
    register<workers_t>(CELLS) informed;  // the workers that are known to have the result

    counter(JOBS + 1, CounterType.packets_and_bytes) contribution_new;
    counter(JOBS + 1, CounterType.packets_and_bytes) contribution_duplicate;
    counter(JOBS + 1, CounterType.packets_and_bytes) contribution_stale;
    counter(JOBS + 1, CounterType.packets_and_bytes) contribution_refused;
    counter(JOBS + 1, CounterType.packets_and_bytes) contribution_late;
    counter(JOBS + 1, CounterType.packets_and_bytes) contribution_held;
    counter(JOBS + 1, CounterType.packets_and_bytes) chunk_complete;
    counter(JOBS + 1, CounterType.packets_and_bytes) chunk_closed_early;
    counter(JOBS + 1, CounterType.packets_and_bytes) result_repeated;
    counter(JOBS + 1, CounterType.packets_and_bytes) partial_repeated;
    counter(JOBS + 1, CounterType.packets_and_bytes) final_new;
    counter(JOBS + 1, CounterType.packets_and_bytes) final_unneeded;

    bool follows; // the cell before has the result of the tag before
    bool held;    // the cell still holds a result that some worker lacks
    bool late;    // the chunk was closed without this worker
    bool closes;  // the packet closes the chunk, although workers are missing

    // The cells of the slot hold the results of the SETS tags before this packet's; the oldest is in the packet's own.
    action find_who_lacks_results() {
        bit<32> slot_cells = meta.cell & ~(bit<32>)(SETS - 1);
        bit<32> at;
        bit<32> tag;
        workers_t workers;
        workers_t present;
        workers_t known = 0;
        bit<1> final;
        at = slot_cells | ((hdr.aggregation.tag - 1) & (SETS - 1));
        tags.read(tag, at);
        finals.read(final, at);
        follows = tag == hdr.aggregation.tag - 1 && final == 1;
        informed.read(workers, at);
        informed.write(at, tag == hdr.aggregation.tag - 1 ? workers | meta.worker : workers);
        for (bit<32> distance = 1; distance <= SETS; distance = distance + 1) {
            at = slot_cells | ((hdr.aggregation.tag - distance) & (SETS - 1));
            tags.read(tag, at);
            informed.read(workers, at);
            known = tag == hdr.aggregation.tag - distance ? known | workers : known;
        }
        contributors.read(present, at);
        held = tag == hdr.aggregation.tag - SETS && present != 0
               && (known & meta.all_workers) != meta.all_workers;
    }

    // A closed chunk does not change, and a chunk whose time is up is closed.
    action record_contribution() {
        bit<32> tag;
        bit<8> kind;
        workers_t present;
        bit<1> final;
        bit<48> first;
        workers_t heard;
        tags.read(tag, meta.cell);
        kinds.read(kind, meta.cell);
        contributors.read(present, meta.cell);
        finals.read(final, meta.cell);
        begun.read(first, meta.cell);
        informed.read(heard, meta.cell);
        bit<32> ahead = hdr.aggregation.tag - tag;
        bool used = present != 0;  // a cell that nobody ever contributed to has no tag to compare with
        meta.stale = held || (used && ahead[31:31] == 1);
        meta.fresh = !used || (ahead != 0 && !meta.stale);
        meta.other_kind = !meta.fresh && !meta.stale && hdr.aggregation.kind != kind;
        meta.holds_result = !meta.fresh && final == 1;
        meta.before = meta.fresh ? 0 : present;
        first = meta.fresh ? standard_metadata.ingress_global_timestamp : first;
        bool counts = !meta.stale && !meta.other_kind;
        late = counts && meta.holds_result && (present & meta.worker) == 0;
        meta.after = counts && !late ? meta.before | meta.worker : present;
        closes = counts && follows && !meta.holds_result && hdr.aggregation.kind != OPENING
                 && meta.after != meta.all_workers
                 && standard_metadata.ingress_global_timestamp - first >= DEADLINE;
        tags.write(meta.cell, meta.stale ? tag : hdr.aggregation.tag);
        kinds.write(meta.cell, meta.fresh ? hdr.aggregation.kind : kind);
        contributors.write(meta.cell, meta.after);
        begun.write(meta.cell, first);
        informed.write(meta.cell, meta.fresh ? 0 : heard);
        finals.write(meta.cell, meta.holds_result || closes || meta.after == meta.all_workers ? 1w1 : 1w0);
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

    action answer_all() {
        hdr.aggregation.kind = hdr.aggregation.kind | RESULT;
        hdr.presence.workers = meta.after;
        standard_metadata.mcast_grp = meta.group;
    }

    action answer_one() {
        result_repeated.count(meta.job);
        hdr.aggregation.kind = hdr.aggregation.kind | RESULT;
        hdr.presence.workers = meta.after;
        standard_metadata.egress_spec = standard_metadata.ingress_port;
    }

    apply {
        if (meta.all_workers == 0
            || standard_metadata.parser_error != error.NoError
            || standard_metadata.checksum_error == 1
            || hdr.aggregation.version != PRESENCE_VERSION
            || ((hdr.aggregation.kind & RESULT) != 0) != (meta.worker == 0)
            || hdr.aggregation.slot >= meta.slots
            || meta.cell >= CELLS
            || meta.right_length == 0
            || hdr.ipv4.total_len != meta.right_length
            || hdr.udp.len + 20 != hdr.ipv4.total_len) {
            refuse();
        } else if (meta.worker == 0) {
            accept_result();
            if (meta.fresh) {
                final_new.count(meta.job);
                meta.counted = true;
                answer_all();
            } else {
                final_unneeded.count(meta.job);
                wait();
            }
        } else {
            find_who_lacks_results();
            record_contribution();
            if (held) {
                contribution_held.count(meta.job);
                wait();
            } else if (meta.stale) {
                contribution_stale.count(meta.job);
                wait();
            } else if (meta.other_kind) {
                refuse();
            } else if (late || (meta.before & meta.worker) != 0) {
                if (late) {
                    contribution_late.count(meta.job);
                } else {
                    contribution_duplicate.count(meta.job);
                }
                meta.answered = true;
                if (meta.holds_result) {
                    answer_one();
                } else if (closes) {
                    chunk_closed_early.count(meta.job);
                    answer_all();
                } else if (meta.before == meta.all_workers && (meta.all_workers & (meta.worker - 1)) == 0) {
                    partial_repeated.count(meta.job);
                    send_up();  // all children ask again at once: the first of them speaks for all
                } else {
                    wait();
                }
            } else {
                contribution_new.count(meta.job);
                meta.counted = true;
                if (closes) {
                    chunk_closed_early.count(meta.job);
                } else if (meta.after == meta.all_workers) {
                    chunk_complete.count(meta.job);
                }
                if (!closes && meta.after != meta.all_workers) {
                    wait();
                } else if (meta.parent == NO_PARENT) {
                    answer_all();
                } else {
                    send_up();
                }
            }
        }
    }
}

control SwitchmlIngress(inout headers_t hdr, inout metadata_t meta,
                        inout standard_metadata_t standard_metadata) {
    Sender() sender;
    Aggregation() aggregation;
    Sums() sums;
    Forwarding() forwarding;

    apply {
        if (hdr.aggregation.isValid()) {
            sender.apply(hdr, meta, standard_metadata);
            aggregation.apply(hdr, meta, standard_metadata);
            sums.apply(hdr, meta);
        } else {
            forwarding.apply(hdr, meta, standard_metadata);
        }
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
        packet.emit(hdr.presence);
        packet.emit(hdr.opening);
        packet.emit(hdr.values);
    }
}

V1Switch(SwitchmlParser(), VerifyChecksums(), SwitchmlIngress(), SwitchmlEgress(),
         ComputeChecksums(), SwitchmlDeparser()) main;
