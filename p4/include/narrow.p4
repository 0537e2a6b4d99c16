// Contributions of 16, 8 or 4 bits per value (docs/numbers.md), which are summed in units of twice as many. WIRE_BITS
// says how many. A packet of the kind NARROW has half as many bytes as one of the kind SCALED: each unit of
// 2 * WIRE_BITS bits holds two values, and each value gets a unit of its own when the packet arrives. From then on the
// packet is SCALED. Values are above 0, so that no sum carries from one unit into the next.
#ifndef NARROW_P4
#define NARROW_P4

#if LANES % 2 != 0
#error "LANES must be even where contributions are narrow: they have half as many bits"
#endif

#if WIRE_BITS == 16
const bit<8>    NARROW = 4;
const bit<64>   LOWER_HALVES_64 = 0x0000ffff0000ffff;  // the lower half of each unit
#elif WIRE_BITS == 8
const bit<8>    NARROW = 5;
const bit<64>   LOWER_HALVES_64 = 0x00ff00ff00ff00ff;
#elif WIRE_BITS == 4
const bit<8>    NARROW = 6;
const bit<64>   LOWER_HALVES_64 = 0x0f0f0f0f0f0f0f0f;
#else
#error "WIRE_BITS must be 16, 8 or 4"
#endif
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
