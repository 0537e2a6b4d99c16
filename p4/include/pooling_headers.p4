// The headers and metadata of packets for slots that all jobs share (systems/pooling/README.md). The wire format of
// the agents holds the same widths; a test compares the two.
#ifndef POOLING_HEADERS_P4
#define POOLING_HEADERS_P4

#include "aggregation_headers.p4"

const bit<8> INT32    = 0x50;
const bit<8> SCALED   = 0x51;  // floats as integers, by a scale that a job has agreed on
const bit<8> FLOAT32  = 0x52;  // floats as they are: summed by the server alone
const bit<8> MISMATCH = 0x53;  // only the server sends it: the workers did not begin the same round

const bit<8> RESEND    = 0x01;  // sent before
const bit<8> COLLISION = 0x02;  // a switch had no slot for the packet
const bit<8> OVERFLOW  = 0x04;  // a worker's values do not fit the scale
const bit<8> CONGESTED = 0x08;  // the packet would have waited long for a link
const bit<8> EVICTED   = 0x10;  // the packet has what a slot held when another chunk took it over

header pooled_t {
    bit<32> session;
    bit<32> digest;   // digest of the round's shape: elements, workers, lanes, ...
    bit<32> oldest;   // the sender has all results before this tag; in a MISMATCH the digest that differs
    bit<32> members;  // the workers whose values are in the packet; in a result, its receivers
    bit<8>  flags;
    bit<8>  priority;
    bit<16> zero;
}

struct headers_t {
    ethernet_t      ethernet;
    tag_t[MAX_TAGS] tags;
    ipv4_h          ipv4;
    ipv6_h          ipv6;
    udp_t           udp;
    aggregation_t   aggregation;
    pooled_t        pooled;
    values_t        values;
}

#define UDP_CHECKED { HEADERS_CHECKED, \
      hdr.pooled.session, hdr.pooled.digest, hdr.pooled.oldest, hdr.pooled.members, \
      hdr.pooled.flags, hdr.pooled.priority, hdr.pooled.zero EACH_WORD(WORD_CHECKED) }

typedef bit<32>  members_t;  // one bit for each worker
typedef bit<112> owner_t;    // job, session, digest and tag of the chunk that has a slot; 0: nobody has it

struct metadata_t {
    bit<32>   job;
    members_t members;    // the workers whose values the packet brings
    members_t all;        // the workers below this switch
    port_t    parent;     // towards the server
    bit<16>   group;
    bit<32>   cell;       // the slot that the packet names
    bit<1>    is_result;
    bool      known;      // the packet comes from a member of the job, or from the server's port
    bool      claims;     // the slot was free
    bool      adds;       // the slot has other members' values of the chunk
    bool      repeats;    // the slot has these members' values already
    bool      releases;   // the slot's values go to the server
    bool      merges;     // the packet's values are added to these
    bool      passes;     // the packet is for the server, whatever the slot has
    bool      evicts;     // only in ESA: the packet takes the slot over
    bool      complete;
    bit<64>   wait_ns;
    bit<16>   zero;       // always 0: csum16 of a packet whose UDP checksum is 0xffff
    bool      rewritten;  // the IPv4 header changed; otherwise its checksum is left as it came
}

#include "slots.p4"

#define CELLS SLOTS
const bool CELLS_FIT = static_assert(CELLS >= 1 && CELLS <= 65535,
                                     "SLOTS must be 1 to 65535 (a packet names a slot in 16 bits)");

#ifndef ABANDONED_US
#define ABANDONED_US 1000000
#endif
const bit<48> ABANDONED = ABANDONED_US;  // a slot that nobody has touched for so long is free

#endif
