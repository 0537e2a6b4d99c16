// Decides what a packet is to its chunk, counts it, and says where it goes. Sums adds and reads values afterwards:
// those of a packet with `counted` are added to its cell, one with `answered` gets the cell's.
//
// A cell begins a new chunk with the first contribution that has a later tag than the cell; one with an earlier tag is
// stale. A child may repeat its contribution until it has the result: it is added once, and answered when the cell
// holds the sum.
#ifndef AGGREGATION_P4
#define AGGREGATION_P4

control Aggregation(inout headers_t hdr, inout metadata_t meta,
                    inout standard_metadata_t standard_metadata) {
    register<bit<32>>(CELLS)   tags;
    register<bit<8>>(CELLS)    kinds;
    register<workers_t>(CELLS) contributors;
    register<bit<1>>(CELLS)    finals;

    counter(JOBS + 1, CounterType.packets_and_bytes) contribution_new;
    counter(JOBS + 1, CounterType.packets_and_bytes) contribution_duplicate;
    counter(JOBS + 1, CounterType.packets_and_bytes) contribution_stale;
    counter(JOBS + 1, CounterType.packets_and_bytes) contribution_refused;
    counter(JOBS + 1, CounterType.packets_and_bytes) chunk_complete;
    counter(JOBS + 1, CounterType.packets_and_bytes) result_repeated;
    counter(JOBS + 1, CounterType.packets_and_bytes) partial_repeated;
    counter(JOBS + 1, CounterType.packets_and_bytes) final_new;
    counter(JOBS + 1, CounterType.packets_and_bytes) final_unneeded;

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
        standard_metadata.mcast_grp = meta.group;
    }

    action answer_one() {
        result_repeated.count(meta.job);
        hdr.aggregation.kind = hdr.aggregation.kind | RESULT;
        standard_metadata.egress_spec = standard_metadata.ingress_port;
    }

    apply {
        if (meta.all_workers == 0
            || standard_metadata.parser_error != error.NoError
            || standard_metadata.checksum_error == 1
            || hdr.aggregation.version != VERSION
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
            record_contribution();
            if (meta.stale) {
                contribution_stale.count(meta.job);
                wait();
            } else if (meta.other_kind) {
                refuse();
            } else if ((meta.before & meta.worker) != 0) {
                contribution_duplicate.count(meta.job);
                if (meta.before != meta.all_workers) {
                    wait();
                } else if (meta.holds_result) {
                    meta.answered = true;
                    answer_one();
                } else if ((meta.all_workers & (meta.worker - 1)) != 0) {
                    wait();  // all children ask again at once: the first of them speaks for all
                } else {
                    partial_repeated.count(meta.job);
                    meta.answered = true;
                    send_up();
                }
            } else {
                contribution_new.count(meta.job);
                meta.counted = true;
                if (meta.after != meta.all_workers) {
                    wait();
                } else {
                    chunk_complete.count(meta.job);
                    meta.answered = true;
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

#endif
