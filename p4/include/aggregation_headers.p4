// The headers of docs/protocol.md, for every program that aggregates. hosts/wire.py holds the same widths; a test
// compares the two.
#ifndef AGGREGATION_HEADERS_P4
#define AGGREGATION_HEADERS_P4

#include "lanes.p4"
#include "lower_headers.p4"
#include "udp.p4"

typedef bit<144> shape_t;  // what a worker reduces in a round, and how: docs/protocol.md

const bit<8> VERSION = 1;
const bit<8> RESULT  = 0x80;  // the bit of a kind that tells a result from a contribution

header aggregation_t {
    bit<8>  version;
    bit<8>  kind;
    bit<16> job;
    bit<16> slot;
    bit<8>  exponent;
    bit<8>  attempt;
    bit<32> tag;
}

// The smallest and the largest shape of all workers whose contributions are in it: equal if they agree.
header opening_t {
    shape_t smallest;
    shape_t largest;
}

header values_t {
    EACH_WORD(WORD_FIELD)
}

// What UDP's checksum covers: RFC 768's pseudo header, the headers and what follows them. A header that is not valid
// adds nothing.
#define HEADERS_CHECKED \
      hdr.ipv4.src, hdr.ipv4.dst, 8w0, hdr.ipv4.protocol, hdr.udp.len, \
      hdr.udp.src_port, hdr.udp.dst_port, hdr.udp.len, \
      hdr.aggregation.version, hdr.aggregation.kind, hdr.aggregation.job, hdr.aggregation.slot, \
      hdr.aggregation.exponent, hdr.aggregation.attempt, hdr.aggregation.tag
#define BODY_CHECKED \
      hdr.opening.smallest, hdr.opening.largest EACH_WORD(WORD_CHECKED)

#endif
