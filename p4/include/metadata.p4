// What a packet carries through the pipeline beside its headers.
#ifndef METADATA_P4
#define METADATA_P4

typedef bit<64> workers_t;  // one bit for each worker

struct metadata_t {
    bit<32>   job;
    workers_t worker;       // the sender's bit; 0: it is not a child of this switch
    workers_t all_workers;  // the bits of all children; 0: the packet belongs to no job of this switch
    port_t    parent;       // where partial sums go; NO_PARENT: this switch is the job's root
    bit<16>   slots;
    bit<16>   group;
    bit<32>   cell;         // (slot, set)
    bool      stale;
    bool      fresh;        // the packet is the first of a new chunk: it overwrites the cell
    bool      other_kind;
    bool      holds_result;      // the cell holds the job's final sum, not this switch's part of it
    bool      counted;      // the packet's values are added to the cell
    bool      answered;     // the cell's values are written into the packet
    workers_t before;       // the workers that contributed before this packet
    workers_t after;
    bit<16>   zero;         // always 0: csum16 of a packet whose UDP checksum is 0xffff
    bool      rewritten;    // the IPv4 header changed; otherwise its checksum is left as it came
}

#endif
