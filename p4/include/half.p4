// IEEE 754 half precision summed exactly (docs/numbers.md). A packet's halves come four to a 64-bit word. Every finite
// half is a multiple of 2^-24 below 2^16, so that 64 bits hold a slot's sum of each:
//   bits 0-59  the sum in units of 2^-24, two's complement
//   bit 60     some addend was not -0      bit 62     some addend was +Inf
//   bit 61     some addend was -Inf        bit 63     some addend was NaN
#ifndef HALF_P4
#define HALF_P4

#if LANES % 2 != 0
#error "LANES must be even where halves are summed: they come four to a word of two lanes"
#endif
#define QUADS (LANES / 2)

// EACH_QUAD(F) writes F(block, digits) once for every word of four halves: as many blocks as QUADS has bits set, each
// of as many words as that bit is worth, numbered within it by binary digits.
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

#define QUAD_FIELD(b, d) bit<64> q##b##_##d;
header halves_t {
    EACH_QUAD(QUAD_FIELD)
}

// The accumulators of the halves of cell c begin at c * HALF_CELLS; a block of b words at four times b.
#define HALF_CELLS (8 * QUADS)
#define HALF_AT(b, d, k) (first_half + (4 * (b + 0b##d) + k))

const bit<64> SUM_BITS  = (1 << 60) - 1;
const bit<64> NOT_MINUS_ZERO = 1 << 60;
const bit<64> MINUS_INFINITY = 1 << 61;
const bit<64> PLUS_INFINITY  = 1 << 62;
const bit<64> NOT_A_NUMBER   = 1 << 63;

// What the macros below compute with, one set for all.
#define HALF_LOCALS \
    bit<32> first_half; \
    bit<16> half; \
    bit<64> quad; \
    bit<64> accumulator; \
    bit<64> so_far; \
    bit<64> magnitude; \
    bit<8>  moved;

// The half whose lowest bit is `low` as an accumulator of one addend. Its magnitude is its fraction, with the leading 1
// of a normal one, moved up by its exponent field less one.
#define DECODE(low) \
    half = quad[low + 15:low]; \
    magnitude = half[14:10] == 0 ? (bit<64>)half[9:0] \
        : (bit<64>)(1w1 ++ half[9:0]) << ((bit<8>)half[14:10] - 1); \
    accumulator = ((half[15:15] == 1 ? 0 - magnitude : magnitude) & SUM_BITS) \
        | (half == 0x8000 ? 64w0 : NOT_MINUS_ZERO); \
    accumulator = half[14:10] != 31 ? accumulator : NOT_MINUS_ZERO \
        | (half[9:0] != 0 ? NOT_A_NUMBER : (half[15:15] == 1 ? MINUS_INFINITY : PLUS_INFINITY));

#define TAKE_HALF(b, d, k, low) \
    DECODE(low) \
    halves.read(so_far, HALF_AT(b, d, k)); \
    so_far = meta.before == 0 ? 0 : so_far; \
    accumulator = ((accumulator + so_far) & SUM_BITS) | ((accumulator | so_far) & ~SUM_BITS); \
    halves.write(HALF_AT(b, d, k), accumulator);
#define TAKE_QUAD(b, d) \
    quad = hdr.halves.q##b##_##d; \
    TAKE_HALF(b, d, 0, 0) TAKE_HALF(b, d, 1, 16) TAKE_HALF(b, d, 2, 32) TAKE_HALF(b, d, 3, 48)

#define MOVE(by) moved = (magnitude >> (moved + 10 + by)) != 0 ? moved + by : moved;

// An accumulator as a half, rounded to nearest, ties to even. The magnitude is moved down until 11 bits are left, the
// first of which makes the exponent field one more than it was moved by; a subnormal is not moved.
#define ENCODE_HALF(b, d, k, low) \
    halves.read(accumulator, HALF_AT(b, d, k)); \
    magnitude = (accumulator[59:59] == 1 ? 0 - accumulator : accumulator) & SUM_BITS; \
    moved = 0; \
    MOVE(16) MOVE(8) MOVE(4) MOVE(2) MOVE(1) \
    so_far = magnitude + ((64w1 << moved) >> 1) - 1 + ((magnitude >> moved) & 1); \
    so_far = moved == 0 ? magnitude : so_far >> moved; \
    half = magnitude[59:40] != 0 || accumulator[62:61] != 0 ? 0x7c00 : (bit<16>)(so_far + ((bit<64>)moved << 10)); \
    half = half | (accumulator[61:61] == 1 || accumulator[60:60] == 0 \
                   || (accumulator[59:59] == 1 && accumulator[62:62] == 0) ? 16w0x8000 : 0); \
    half = accumulator[63:63] == 1 || accumulator[62:61] == 3 ? 0x7e00 : half; \
    quad = quad | ((bit<64>)half << low);
#define GIVE_QUAD(b, d) \
    quad = 0; \
    ENCODE_HALF(b, d, 0, 0) ENCODE_HALF(b, d, 1, 16) ENCODE_HALF(b, d, 2, 32) ENCODE_HALF(b, d, 3, 48) \
    hdr.halves.q##b##_##d = quad;

#define QUAD_CHECKED(b, d) , hdr.halves.q##b##_##d

#endif
