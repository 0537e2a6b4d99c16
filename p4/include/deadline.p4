// The part of the control Aggregation that closes a chunk without late workers (docs/partial-sums.md). v1model has no
// timers: a chunk whose first contribution came at least DEADLINE ago is closed by the next contribution to it, which
// waiting workers repeat. An OPENING always waits for all workers.
//
// A worker that contributes to a tag has the result of the tag before. As long as a worker may still lack the result
// that a cell holds, the cell is kept, and contributions that would take its place are dropped. So no worker is
// ever SETS tags behind another one, and each can fetch the results that it missed.
    register<bit<48>>(CELLS)   begun;     // when the first contribution came, in microseconds
    register<workers_t>(CELLS) informed;  // the workers that are known to have the result

    counter(JOBS + 1, CounterType.packets_and_bytes) contribution_late;
    counter(JOBS + 1, CounterType.packets_and_bytes) contribution_held;
    counter(JOBS + 1, CounterType.packets_and_bytes) chunk_closed_early;

    bool follows; // the cell before has the result of the tag before
    bool held;    // the cell still holds a result that some worker lacks
    bool late;    // the chunk was closed without this worker
    bool closes;  // the packet closes the chunk, although workers are missing

    // The cell that is `distance` tags before this packet's; the last is the packet's own.
#define ASK_EARLIER(distance) \
        at = slot_cells | ((hdr.aggregation.tag - distance) & (SETS - 1)); \
        tags.read(tag, at); \
        informed.read(workers, at); \
        known = tag == hdr.aggregation.tag - distance ? known | workers : known;

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
        EACH_EARLIER(ASK_EARLIER)
        contributors.read(present, at);
        held = tag == hdr.aggregation.tag - SETS && present != 0
               && (known & meta.all_workers) != meta.all_workers;
    }

    // Ends record_contribution: a closed chunk does not change, and a chunk whose time is up is closed.
#define CLOSE_IN_TIME \
        bit<48> first; \
        workers_t heard; \
        begun.read(first, meta.cell); \
        first = meta.fresh ? standard_metadata.ingress_global_timestamp : first; \
        begun.write(meta.cell, first); \
        informed.read(heard, meta.cell); \
        informed.write(meta.cell, meta.fresh ? 0 : heard); \
        late = meta.holds_result && !meta.stale && !meta.other_kind && (present & meta.worker) == 0; \
        meta.after = late ? present : meta.after; \
        contributors.write(meta.cell, meta.after); \
        closes = follows && !meta.holds_result && !meta.stale && !meta.other_kind \
                 && hdr.aggregation.kind != OPENING && meta.after != meta.all_workers \
                 && standard_metadata.ingress_global_timestamp - first >= DEADLINE; \
        finals.write(meta.cell, meta.holds_result || closes || meta.after == meta.all_workers ? 1w1 : 1w0);

#define AGAIN ((meta.before & meta.worker) != 0 || late)
#define ANSWERABLE (meta.before == meta.all_workers || meta.holds_result || closes)
#define ENDS (meta.after == meta.all_workers || closes)
#define COUNT_STALE \
                if (held) { contribution_held.count(meta.job); } \
                else { contribution_stale.count(meta.job); }
#define COUNT_AGAIN \
                if (late) { contribution_late.count(meta.job); } \
                else { contribution_duplicate.count(meta.job); }
#define COUNT_END \
                    if (closes) { chunk_closed_early.count(meta.job); } \
                    else { chunk_complete.count(meta.job); }
