// The headers, kinds and checksums of docs/protocol.md, where every contribution carries a chunk.
#ifndef HEADERS_P4
#define HEADERS_P4

#include "aggregation_headers.p4"

const bit<8> INT32   = 0;
const bit<8> SCALED  = 1;
const bit<8> OPENING = 2;
#ifdef FLOAT16
const bit<8> HALF    = 3;
#define HALVES_KIND HALF
#endif
#ifdef BFLOAT16
const bit<8> BFLOAT  = 7;
#define HALVES_KIND BFLOAT
#endif

struct headers_t {
    ethernet_t      ethernet;
    tag_t[MAX_TAGS] tags;
    ipv4_h          ipv4;
    ipv6_h          ipv6;
    udp_t           udp;
    aggregation_t   aggregation;
#ifdef DEADLINE
    presence_t      presence;
#endif
    opening_t       opening;
    values_t        values;
#ifdef HALVES
    quad_t[QUADS]   quads;
#endif
#ifdef WIRE_BITS
    narrow_t        narrow;
#endif
}

#ifdef HALVES
#define UDP_CHECKED { HEADERS_CHECKED, BODY_CHECKED EACH_QUAD(QUAD_CHECKED) }
#elif defined(WIRE_BITS)
#define UDP_CHECKED { HEADERS_CHECKED, BODY_CHECKED EACH_WORD(NARROW_CHECKED) }
#elif defined(DEADLINE)
#define UDP_CHECKED { HEADERS_CHECKED, hdr.presence.workers, BODY_CHECKED }
#else
#define UDP_CHECKED { HEADERS_CHECKED, BODY_CHECKED }
#endif

#endif
