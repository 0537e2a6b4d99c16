// What a packet carries through the pipeline beside its headers, and how many cells there are: SETS for each of SLOTS
// slots. A program defines SETS, a power of two; a cell is a set of a slot.
#ifndef METADATA_P4
#define METADATA_P4

#include "slots.p4"

#define CELLS (SETS * SLOTS)
const bool CELLS_FIT = static_assert(CELLS >= 1 && CELLS <= 65536, "SETS * SLOTS must be 1 to 65536");

const port_t NO_PARENT = 511;

typedef bit<64> workers_t;  // one bit for each worker

struct metadata_t {
    bit<16>   right_length; // the IPv4 length of a packet with the body that was parsed; 0: it has none
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
    bool      holds_result; // the cell holds the job's final sum, not this switch's part of it
    bool      counted;      // the packet's values are added to the cell
    bool      answered;     // the cell's values are written into the packet
    workers_t before;       // the workers that contributed before this packet
    workers_t after;
    bit<16>   zero;         // always 0: csum16 of a packet whose UDP checksum is 0xffff
    bool      rewritten;    // the IPv4 header changed; otherwise its checksum is left as it came
}

#endif
