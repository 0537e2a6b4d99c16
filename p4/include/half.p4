// Floats of 16 bits ("halves", docs/numbers.md): half precision of IEEE 754 where FLOAT16 is defined, bfloat16 where
// BFLOAT16 is. A packet's halves come four to a 64-bit word. half_sums.p4 has their sums.
#ifndef HALF_P4
#define HALF_P4

#if defined(FLOAT16) && defined(BFLOAT16)
#error "a program sums one type of 16 bits: FLOAT16 or BFLOAT16"
#endif

#ifdef FLOAT16
const bit<16> INFINITY = 0x7c00;
const bit<16> QUIET_NAN = 0x7e00;
#define FRACTION_BITS 10
#define BINS 1
#else
const bit<16> INFINITY = 0x7f80;
const bit<16> QUIET_NAN = 0x7fc0;
#define FRACTION_BITS 7
#define BINS 8
#endif
#define FIELD 14:FRACTION_BITS
#define FRACTION FRACTION_BITS - 1:0

#if LANES % 2 != 0
#error "LANES must be even where halves are summed: they come four to a word of two lanes"
#endif
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
