// The words of four values of 16 bits that take the place of LANES lanes: a stack of QUADS headers.
#ifndef QUADS_P4
#define QUADS_P4

#include "lanes.p4"

const bool LANES_FIT = static_assert(LANES % 2 == 0,
                                     "LANES must be even: values of 16 bits come four to a word of two lanes");
#define QUADS (LANES / 2)

header quad_t {
    bit<64> halves;
}

// A checksum's fields are listed one by one. EACH_QUAD(F) writes F(block, digits) once for every word of four halves: as
// many blocks as QUADS has bits set, the largest first, each of as many words as that bit is worth, numbered within it
// by binary digits.
#define QUADS_1(F, b, d)    F(b, d)
#define QUADS_2(F, b, d)    QUADS_1(F, b, d##0) QUADS_1(F, b, d##1)
#define QUADS_4(F, b, d)    QUADS_2(F, b, d##0) QUADS_2(F, b, d##1)
#define QUADS_8(F, b, d)    QUADS_4(F, b, d##0) QUADS_4(F, b, d##1)
#define QUADS_16(F, b, d)   QUADS_8(F, b, d##0) QUADS_8(F, b, d##1)
#define QUADS_32(F, b, d)   QUADS_16(F, b, d##0) QUADS_16(F, b, d##1)
#define QUADS_64(F, b, d)   QUADS_32(F, b, d##0) QUADS_32(F, b, d##1)
#define QUADS_128(F, b, d)  QUADS_64(F, b, d##0) QUADS_64(F, b, d##1)
#define QUADS_256(F, b, d)  QUADS_128(F, b, d##0) QUADS_128(F, b, d##1)
#define QUADS_512(F, b, d)  QUADS_256(F, b, d##0) QUADS_256(F, b, d##1)
#define QUADS_1024(F, b, d) QUADS_512(F, b, d##0) QUADS_512(F, b, d##1)

#if LANES / 2 / 1024 % 2
#define BLOCK_1024(F) QUADS_1024(F, 1024, 0)
#else
#define BLOCK_1024(F)
#endif
#if LANES / 2 / 512 % 2
#define BLOCK_512(F) QUADS_512(F, 512, 0)
#else
#define BLOCK_512(F)
#endif
#if LANES / 2 / 256 % 2
#define BLOCK_256(F) QUADS_256(F, 256, 0)
#else
#define BLOCK_256(F)
#endif
#if LANES / 2 / 128 % 2
#define BLOCK_128(F) QUADS_128(F, 128, 0)
#else
#define BLOCK_128(F)
#endif
#if LANES / 2 / 64 % 2
#define BLOCK_64(F) QUADS_64(F, 64, 0)
#else
#define BLOCK_64(F)
#endif
#if LANES / 2 / 32 % 2
#define BLOCK_32(F) QUADS_32(F, 32, 0)
#else
#define BLOCK_32(F)
#endif
#if LANES / 2 / 16 % 2
#define BLOCK_16(F) QUADS_16(F, 16, 0)
#else
#define BLOCK_16(F)
#endif
#if LANES / 2 / 8 % 2
#define BLOCK_8(F) QUADS_8(F, 8, 0)
#else
#define BLOCK_8(F)
#endif
#if LANES / 2 / 4 % 2
#define BLOCK_4(F) QUADS_4(F, 4, 0)
#else
#define BLOCK_4(F)
#endif
#if LANES / 2 / 2 % 2
#define BLOCK_2(F) QUADS_2(F, 2, 0)
#else
#define BLOCK_2(F)
#endif
#if LANES / 2 % 2
#define BLOCK_1(F) QUADS_1(F, 1, 0)
#else
#define BLOCK_1(F)
#endif
#define EACH_QUAD(F) BLOCK_1024(F) BLOCK_512(F) BLOCK_256(F) BLOCK_128(F) BLOCK_64(F) BLOCK_32(F) BLOCK_16(F) \
    BLOCK_8(F) BLOCK_4(F) BLOCK_2(F) BLOCK_1(F)

#define QUAD_CHECKED(b, d) , hdr.quads[QUADS / (2 * b) * (2 * b) + 0b##d].halves

#endif
