// ATP-style aggregation (systems/atp/README.md): all jobs share the switch's slots, and a server sums what finds none.
// include/pooling.p4 has what packets go through; this file, what becomes of a slot. Compile-time parameters: LANES
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
    EACH_WORD(SUM_REGISTER)

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
        owners.write(meta.cell, meta.claims ? chunk : owner);
        contributors.write(meta.cell, meta.releases ? 32w0 : after);
        states.write(meta.cell, (meta.releases ? RESEND : (meta.claims ? 8w0 : (state & RESEND))) | overflow);
        touched_us.write(meta.cell, (meta.claims || meta.adds) ? now : touched);
        if (meta.complete || meta.releases) {
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
            }
        }
    }
}

#include "include/pooling.p4"
