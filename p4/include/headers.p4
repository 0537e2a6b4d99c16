// Headers of docs/protocol.md. hosts/wire.py holds the same widths; a test compares the two.
#ifndef HEADERS_P4
#define HEADERS_P4

#include "lanes.p4"
#include "lower_headers.p4"

typedef bit<144> shape_t;  // what a worker reduces in a round, and how: docs/protocol.md

const bit<8>  PROTOCOL_UDP    = 17;
const bit<16> AGGREGATOR_PORT = 0xbee0;  // 48864

const bit<8> VERSION = 1;
const bit<8> INT32   = 0;
const bit<8> SCALED  = 1;
const bit<8> OPENING = 2;
const bit<8> RESULT  = 0x80;

header udp_t {
    bit<16> src_port;
    bit<16> dst_port;
    bit<16> len;
    bit<16> checksum;
}

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

#define WORD_FIELD(name, bits) bit<bits> name;
header values_t {
    EACH_WORD(WORD_FIELD)
}

struct headers_t {
    ethernet_t      ethernet;
    tag_t[MAX_TAGS] tags;
    ipv4_h          ipv4;
    ipv6_h          ipv6;
    udp_t           udp;
    aggregation_t   aggregation;
    opening_t       opening;
    values_t        values;
}

// What UDP's checksum covers: RFC 768's pseudo header, header and data. A header that is not valid adds nothing.
#define WORD_CHECKED(name, bits) , hdr.values.name
#define UDP_CHECKED \
    { hdr.ipv4.src, hdr.ipv4.dst, 8w0, hdr.ipv4.protocol, hdr.udp.len, \
      hdr.udp.src_port, hdr.udp.dst_port, hdr.udp.len, \
      hdr.aggregation.version, hdr.aggregation.kind, hdr.aggregation.job, hdr.aggregation.slot, \
      hdr.aggregation.exponent, hdr.aggregation.attempt, hdr.aggregation.tag, \
      hdr.opening.smallest, hdr.opening.largest \
      EACH_WORD(WORD_CHECKED) }

#endif
