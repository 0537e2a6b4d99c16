// Contributions of 16, 8 or 4 bits per value (docs/numbers.md), which are summed in units of twice as many. WIRE_BITS
// says how many. A packet of the kind NARROW has half as many bytes as one of the kind SCALED: each unit of
// 2 * WIRE_BITS bits holds two values, and each value gets a unit of its own when the packet arrives. From then on the
// packet is SCALED. Values are above 0, so that no sum carries from one unit into the next.
#ifndef NARROW_P4
#define NARROW_P4

#include "lanes.p4"

#ifndef WIRE_BITS
#define WIRE_BITS 16
#endif
const bool WIRE_BITS_FIT = static_assert(WIRE_BITS == 16 || WIRE_BITS == 8 || WIRE_BITS == 4,
                                         "WIRE_BITS must be 16, 8 or 4");
const bool LANES_FIT = static_assert(LANES % 2 == 0,
                                     "LANES must be even: narrow contributions have half as many bits");

const bit<8> NARROW16 = 4;
const bit<8> NARROW8  = 5;
const bit<8> NARROW4  = 6;
const bit<8> NARROW   = WIRE_BITS == 16 ? NARROW16 : (WIRE_BITS == 8 ? NARROW8 : NARROW4);

const bit<64>   LOWER_HALVES_64   = 0xffffffffffffffff / ((1 << WIRE_BITS) + 1);  // the lower half of each unit
const bit<128>  LOWER_HALVES_128  = LOWER_HALVES_64 ++ LOWER_HALVES_64;
const bit<256>  LOWER_HALVES_256  = LOWER_HALVES_128 ++ LOWER_HALVES_128;
const bit<512>  LOWER_HALVES_512  = LOWER_HALVES_256 ++ LOWER_HALVES_256;
const bit<1024> LOWER_HALVES_1024 = LOWER_HALVES_512 ++ LOWER_HALVES_512;

#define NARROW_FIELD(name, bits) bit<((bits) / 2)> name;
header narrow_t {
    EACH_WORD(NARROW_FIELD)
}

#define NARROW_CHECKED(name, bits) , hdr.narrow.name

// The upper values of a word's units come first, then the lower ones.
#define WIDEN(name, bits) \
        hdr.values.name = ((hdr.narrow.name >> WIRE_BITS) & (bit<((bits) / 2)>)LOWER_HALVES_1024) \
                          ++ (hdr.narrow.name & (bit<((bits) / 2)>)LOWER_HALVES_1024);

#endif
