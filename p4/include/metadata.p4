// What a packet carries through the pipeline beside its headers.
#ifndef METADATA_P4
#define METADATA_P4

typedef bit<64> workers_t;  // one bit a worker

struct metadata_t {
    bit<32>   job;
    workers_t worker;       // this worker's bit; 0: not a worker of this job
    workers_t all_workers;
    bit<16>   first_slot;
    bit<16>   slots;
    bit<16>   group;
    bit<32>   cell;         // (slot, set)
    bool      stale;
    bool      fresh;        // first of a new chunk: overwrites what the cell held
    bool      other_kind;
    workers_t before;       // who had contributed before this packet
    workers_t after;
    bool      rewritten;    // the IPv4 header changed; otherwise its checksum is left as it came
}

#endif
