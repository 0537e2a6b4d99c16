// What packets of docs/protocol.md carry: their kinds, and the IPv4 lengths that go with them.
#ifndef HEADERS_P4
#define HEADERS_P4

#include "aggregation_headers.p4"

const bit<8> INT32   = 0;
const bit<8> SCALED  = 1;  // floats as integers, by an exponent that the workers agree on
const bit<8> OPENING = 2;

const bit<16> HEADERS_LENGTH = 20 + 8 + 12;
const bit<16> OPENING_LENGTH = HEADERS_LENGTH + 2 * 18;
const bit<16> VALUES_LENGTH  = HEADERS_LENGTH + 4 * LANES;

#endif
