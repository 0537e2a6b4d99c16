// Headers of docs/protocol.md. hosts/wire.py holds the same widths; a test compares the two.
#ifndef HEADERS_P4
#define HEADERS_P4

#include "lanes.p4"

typedef bit<48> mac_t;
typedef bit<32> ipv4_t;
typedef bit<9>  port_t;
typedef bit<144> shape_t;  // what a worker reduces in a round, and how: docs/protocol.md

const bit<16> ETHERTYPE_IPV4             = 0x0800;
const bit<16> ETHERTYPE_IPV6             = 0x86dd;
const bit<16> ETHERTYPE_VLAN             = 0x8100;  // 802.1Q
const bit<16> ETHERTYPE_SERVICE_VLAN     = 0x88a8;  // 802.1ad
const bit<16> ETHERTYPE_OLD_SERVICE_VLAN = 0x9100;  // stacked tags before 802.1ad
const bit<8>  PROTOCOL_ICMP              = 1;
const bit<8>  PROTOCOL_UDP               = 17;

#define MAX_TAGS 4

const mac_t   AGGREGATOR_MAC  = 0x02000000fffe;
const ipv4_t  AGGREGATOR_IPV4 = 0x0a00fffe;  // 10.0.255.254
const bit<16> AGGREGATOR_PORT = 0xbee0;      // 48864
const bit<32> IPV4_MAPPED     = 0xffff;      // ::ffff:0:0/96 (RFC 4291), its second half

const bit<8> VERSION = 1;
const bit<8> INT32   = 0;
const bit<8> SCALED  = 1;
const bit<8> OPENING = 2;
const bit<8> RESULT  = 0x80;

header ethernet_t {
    mac_t   dst;
    mac_t   src;
    bit<16> ethertype;
}

header tag_t {
    bit<3>  priority;
    bit<1>  drop_eligible;
    bit<12> vlan;
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

header ipv6_h {
    bit<4>  version;
    bit<8>  traffic_class;
    bit<20> flow_label;
    bit<16> payload_len;
    bit<8>  next_header;
    bit<8>  hop_limit;
    bit<64> src_upper;
    bit<32> src_mapped;  // where this is IPV4_MAPPED and the upper half 0, an IPv4 address follows
    ipv4_t  src_ipv4;
    bit<64> dst_upper;
    bit<32> dst_mapped;
    ipv4_t  dst_ipv4;
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

// What the checksums cover: RFC 791's header, RFC 768's pseudo header, header and data. A header that is not valid adds
// nothing.
#define IPV4_CHECKED \
    { hdr.ipv4.version, hdr.ipv4.ihl, hdr.ipv4.tos, hdr.ipv4.total_len, hdr.ipv4.id, \
      hdr.ipv4.reserved, hdr.ipv4.dont_fragment, hdr.ipv4.more_fragments, \
      hdr.ipv4.fragment_offset, hdr.ipv4.ttl, hdr.ipv4.protocol, hdr.ipv4.src, hdr.ipv4.dst }
#define WORD_CHECKED(name, bits) , hdr.values.name
#define UDP_CHECKED \
    { hdr.ipv4.src, hdr.ipv4.dst, 8w0, hdr.ipv4.protocol, hdr.udp.len, \
      hdr.udp.src_port, hdr.udp.dst_port, hdr.udp.len, \
      hdr.aggregation.version, hdr.aggregation.kind, hdr.aggregation.job, hdr.aggregation.slot, \
      hdr.aggregation.exponent, hdr.aggregation.attempt, hdr.aggregation.tag, \
      hdr.opening.smallest, hdr.opening.largest \
      EACH_WORD(WORD_CHECKED) }

#endif
