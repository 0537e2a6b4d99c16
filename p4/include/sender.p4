// Finds the job that a packet belongs to, which child of this switch sent it, and the cell that it means. A packet's
// sender is identified by the port it came in by, never by what the packet says.
#ifndef SENDER_P4
#define SENDER_P4

control Sender(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    action set_unknown_sender() {
        meta.job = NO_JOB;
        meta.worker = 0;
        meta.all_workers = 0;
    }

    action find_cell(bit<8> job_index, workers_t all_workers, bit<16> first_slot, bit<16> slots,
                     bit<16> group) {
        meta.job = (bit<32>)job_index;
        meta.all_workers = all_workers;
        meta.slots = slots;
        meta.group = group;
        meta.cell = ((bit<32>)first_slot + (bit<32>)hdr.aggregation.slot) * SETS
                    | (hdr.aggregation.tag & (SETS - 1));
    }

    // The packet comes from a child: a worker, or a switch below with its partial sum.
    action contribute(bit<8> job_index, workers_t worker, workers_t all_workers, bit<16> first_slot,
                      bit<16> slots, bit<16> group, port_t parent) {
        find_cell(job_index, all_workers, first_slot, slots, group);
        meta.worker = worker;
        meta.parent = parent;
    }

    // The packet comes from the parent: it is a final sum.
    action conclude(bit<8> job_index, workers_t all_workers, bit<16> first_slot, bit<16> slots,
                    bit<16> group) {
        find_cell(job_index, all_workers, first_slot, slots, group);
        meta.worker = 0;
    }

    table members {
        key = {
            standard_metadata.ingress_port: exact;
            hdr.aggregation.job: exact;
        }
        actions = { contribute; conclude; set_unknown_sender; }
        const default_action = set_unknown_sender();
        size = 1024;
    }

    apply {
        members.apply();
    }
}

#endif
