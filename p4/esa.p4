// ESA-style aggregation (systems/esa/README.md): slots that all jobs share, and that a chunk of a higher priority takes
// over. What the slot held goes to its server. Apart from this, slots are as in atp.p4. Compile-time parameters: LANES
// (values a packet carries), SLOTS (slots of the switch).
#include <core.p4>
#include <v1model.p4>

#include "include/pooling_headers.p4"

// All state of slots lives in ingress, and each register is read, changed and written within one action, as BMv2 locks
// registers for one action at a time.
control Slots(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    register<owner_t>(CELLS)   owners;
    register<members_t>(CELLS) contributors;
    register<bit<8>>(CELLS)    states;  // OVERFLOW; RESEND: the slot's values have gone to the server
    register<bit<48>>(CELLS)   touched_us;
    register<bit<8>>(CELLS)    priorities;
    register<bit<8>>(CELLS)    kinds;
    EACH_WORD(SUM_REGISTER)

    counter(JOBS + 1, CounterType.packets_and_bytes) slot_evicted;

    // Decide what becomes of the slot. A slot is free when a later packet of the job shows that its chunk is done
    // (`oldest`), or when no packet has used it for long, because its job may have ended. A slot whose sum has gone to
    // the server is free for other chunks, but forwards later contributions to its own chunk to the server, because
    // they could never become a whole sum here.
    action record_contribution() {
        owner_t owner;
        members_t present;
        bit<8> state;
        bit<48> touched;
        owners.read(owner, meta.cell);
        contributors.read(present, meta.cell);
        states.read(state, meta.cell);
        touched_us.read(touched, meta.cell);
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
        bit<8> resident;
        bit<8> kind;
        priorities.read(resident, meta.cell);
        kinds.read(kind, meta.cell);
        bool foreign = !mine && !free && !again;
        meta.evicts = foreign && hdr.pooled.priority > resident;
        bool begins = meta.claims || meta.evicts;
        priorities.write(meta.cell, begins ? hdr.pooled.priority
                                    : ((foreign && resident != 0) ? (resident - 1) : resident));
        kinds.write(meta.cell, begins ? hdr.aggregation.kind : kind);
        hdr.aggregation.kind = meta.evicts ? kind : hdr.aggregation.kind;
        // A whole sum has been sent to the server, so the slot need not keep it.
        owners.write(meta.cell, meta.complete ? 112w0 : (begins ? chunk : owner));
        contributors.write(meta.cell, meta.releases ? 32w0 : (meta.evicts ? meta.members : after));
        states.write(meta.cell, meta.evicts
                                ? (hdr.pooled.flags & OVERFLOW)
                                : ((meta.releases ? RESEND : (meta.claims ? 8w0 : (state & RESEND))) | overflow));
        touched_us.write(meta.cell, (begins || meta.adds) ? now : touched);
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
        owners.read(owner, meta.cell);
        bool mine = owner == hdr.aggregation.job ++ hdr.pooled.session ++ hdr.pooled.digest ++ hdr.aggregation.tag;
        owners.write(meta.cell, mine ? 112w0 : owner);
    }

    action put_values() {
        EACH_WORD(PUT)
    }

    action add_values() {
        EACH_WORD(ADD)
    }

    action get_values() {
        EACH_WORD(GET)
    }

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

    apply {
        if (meta.is_result == 1) {
            conclude();
        } else {
            record_contribution();
            if (meta.claims) {
                put_values();
            } else if (meta.adds || meta.merges) {
                add_values();
            } else if (meta.releases) {
                get_values();
            } else if (meta.evicts) {
                swap_values();
                evicted.apply();
            }
        }
    }
}

#include "include/pooling.p4"
