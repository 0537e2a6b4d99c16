// Ethernet, VLAN tags and IP: headers that every program has, and the addresses that forwarding.p4 guards.
#ifndef LOWER_HEADERS_P4
#define LOWER_HEADERS_P4

typedef bit<48> mac_t;
typedef bit<32> ipv4_t;
typedef bit<9>  port_t;

const bit<16> ETHERTYPE_IPV4             = 0x0800;
const bit<16> ETHERTYPE_IPV6             = 0x86dd;
const bit<16> ETHERTYPE_VLAN             = 0x8100;  // 802.1Q
const bit<16> ETHERTYPE_SERVICE_VLAN     = 0x88a8;  // 802.1ad
const bit<16> ETHERTYPE_OLD_SERVICE_VLAN = 0x9100;  // stacked tags before 802.1ad
const bit<8>  PROTOCOL_ICMP              = 1;

#define MAX_TAGS 4

const mac_t   AGGREGATOR_MAC  = 0x02000000fffe;
const ipv4_t  AGGREGATOR_IPV4 = 0x0a00fffe;  // 10.0.255.254
const bit<32> IPV4_MAPPED     = 0xffff;      // ::ffff:0:0/96 (RFC 4291), its second half

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

// What an IPv4 header's checksum covers (RFC 791).
#define IPV4_CHECKED \
    { hdr.ipv4.version, hdr.ipv4.ihl, hdr.ipv4.tos, hdr.ipv4.total_len, hdr.ipv4.id, \
      hdr.ipv4.reserved, hdr.ipv4.dont_fragment, hdr.ipv4.more_fragments, \
      hdr.ipv4.fragment_offset, hdr.ipv4.ttl, hdr.ipv4.protocol, hdr.ipv4.src, hdr.ipv4.dst }

#endif
