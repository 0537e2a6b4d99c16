// Headers of docs/protocol.md. hosts/wire.py holds the same widths; a test compares the two.
#ifndef HEADERS_P4
#define HEADERS_P4

#include "lanes.p4"

typedef bit<48> mac_t;
typedef bit<32> ipv4_t;
typedef bit<9>  port_t;

const bit<16> ETHERTYPE_IPV4 = 0x0800;
const bit<8>  PROTOCOL_UDP   = 17;

const mac_t   AGGREGATOR_MAC  = 0x02000000fffe;
const ipv4_t  AGGREGATOR_IPV4 = 0x0a00fffe;  // 10.0.255.254
const bit<16> AGGREGATOR_PORT = 0xbee0;      // 48864

const bit<8> VERSION   = 1;
const bit<8> INT32     = 0;
const bit<8> SCALED    = 1;
const bit<8> EXPONENTS = 2;
const bit<8> RESULT    = 0x80;

header ethernet_t {
    mac_t   dst;
    mac_t   src;
    bit<16> ethertype;
}

header ipv4_h {
    bit<4>  version;
    bit<4>  ihl;
    bit<8>  tos;
    bit<16> total_len;
    bit<16> id;
    bit<1>  reserved;
    bit<1>  dont_fragment;
    bit<1>  more_fragments;
    bit<13> fragment_offset;
    bit<8>  ttl;
    bit<8>  protocol;
    bit<16> checksum;
    ipv4_t  src;
    ipv4_t  dst;
}

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

#define WORD_FIELD(name, bits) bit<bits> name;
header values_t {
    EACH_WORD(WORD_FIELD)
}

struct headers_t {
    ethernet_t    ethernet;
    ipv4_h        ipv4;
    udp_t         udp;
    aggregation_t aggregation;
    values_t      values;
}

// What the checksums cover: RFC 791's header, RFC 768's pseudo header, header and data. A values header that is not
// valid adds nothing.
#define IPV4_CHECKED \
    { hdr.ipv4.version, hdr.ipv4.ihl, hdr.ipv4.tos, hdr.ipv4.total_len, hdr.ipv4.id, \
      hdr.ipv4.reserved, hdr.ipv4.dont_fragment, hdr.ipv4.more_fragments, \
      hdr.ipv4.fragment_offset, hdr.ipv4.ttl, hdr.ipv4.protocol, hdr.ipv4.src, hdr.ipv4.dst }
#define WORD_CHECKED(name, bits) , hdr.values.name
#define UDP_CHECKED \
    { hdr.ipv4.src, hdr.ipv4.dst, 8w0, hdr.ipv4.protocol, hdr.udp.len, \
      hdr.udp.src_port, hdr.udp.dst_port, hdr.udp.len, \
      hdr.aggregation.version, hdr.aggregation.kind, hdr.aggregation.job, hdr.aggregation.slot, \
      hdr.aggregation.exponent, hdr.aggregation.attempt, hdr.aggregation.tag \
      EACH_WORD(WORD_CHECKED) }

#endif
