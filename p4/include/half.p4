// Floats of 16 bits ("halves") summed exactly (docs/numbers.md): half precision of IEEE 754 where FLOAT16 is defined,
// bfloat16 where BFLOAT16 is. A packet's halves come four to a 64-bit word. Every finite half is a whole number of units,
// the smallest subnormal. A slot has BINS accumulators for each half, as 32 exponents share a bin: in bin i, 1 stands for
// 2^(32 * i) units. An accumulator:
//   bits 0-59  START(i) and the sum of what was added to bin i, which is below 2^46 in magnitude
//   bit 60     some addend was not -0      bit 62     some addend was +Inf
//   bit 61     some addend was -Inf        bit 63     some addend was NaN
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
#define HALF_CELLS (8 * QUADS * BINS)
#define HALF_AT(b, d, k) (first_half + (4 * (b + 0b##d) + k) * BINS)

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
    bit<8>  place; \
    bit<16> moved; \
    bit<1>  negative; \
    bit<4>  flags; \
    BIN_LOCALS

// All bins together start at 2^(50 + 32 * (BINS - 1)) units, so that none becomes negative: the excess of bin i is what
// bin i + 1 lacks.
#define START(i) ((1 << 50) - (i == 0 ? 0 : 1 << 18))

#if BINS == 1
#define BIN_LOCALS
#define EACH_BIN(F, at) F(at, 0)
#else
#define BIN_LOCALS \
    bit<64> carried; \
    bit<32> word; \
    bit<24> below;
#define EACH_UPPER_BIN(F, at) F(at, 1) F(at, 2) F(at, 3) F(at, 4) F(at, 5) F(at, 6) F(at, 7)
#define EACH_BIN(F, at) F(at, 0) EACH_UPPER_BIN(F, at)
#endif

// The half whose lowest bit is `low`, as an accumulator that has only this addend. Its magnitude is its fraction (with
// the leading 1, if the half is normal), shifted left by the exponent field minus one.
#define DECODE(low) \
    half = quad[low + 15:low]; \
    place = half[FIELD] == 0 ? 0 : (bit<8>)half[FIELD] - 1; \
    magnitude = ((bit<64>)half[FRACTION] | (half[FIELD] == 0 ? 64w0 : 1 << FRACTION_BITS)) << (place & 31); \
    accumulator = ((half[15:15] == 1 ? 0 - magnitude : magnitude) & SUM_BITS) \
        | (half == 0x8000 ? 64w0 : NOT_MINUS_ZERO); \
    accumulator = (half & INFINITY) != INFINITY ? accumulator : NOT_MINUS_ZERO \
        | (half[FRACTION] != 0 ? NOT_A_NUMBER : (half[15:15] == 1 ? MINUS_INFINITY : PLUS_INFINITY));

#define TAKE_HALF(b, d, k, low) \
    DECODE(low) \
    halves.read(so_far, HALF_AT(b, d, k) + (bit<32>)(place >> 5)); \
    accumulator = ((accumulator + so_far) & SUM_BITS) | ((accumulator | so_far) & ~SUM_BITS); \
    halves.write(HALF_AT(b, d, k) + (bit<32>)(place >> 5), accumulator);
#define TAKE_QUAD(b, d) \
    quad = hdr.halves.q##b##_##d; \
    TAKE_HALF(b, d, 0, 0) TAKE_HALF(b, d, 1, 16) TAKE_HALF(b, d, 2, 32) TAKE_HALF(b, d, 3, 48)

#define CLEAR_BIN(at, i) halves.write(at + i, START(i));
#define CLEAR_QUAD(b, d) \
    EACH_BIN(CLEAR_BIN, HALF_AT(b, d, 0)) EACH_BIN(CLEAR_BIN, HALF_AT(b, d, 1)) \
    EACH_BIN(CLEAR_BIN, HALF_AT(b, d, 2)) EACH_BIN(CLEAR_BIN, HALF_AT(b, d, 3))

// GATHER sets `negative`, `flags` and the magnitude of a sum without its `moved` lowest bits. If one of these bits is
// set, so is the lowest bit of the magnitude, which has 25 bits or more then.
#define SUM (accumulator & SUM_BITS)
#define SUM_OR_NEGATED(i) (negative == 0 ? SUM : 2 * START(i) - SUM)
#if BINS == 1
#define GATHER(at) \
    halves.read(accumulator, at); \
    flags = accumulator[63:60]; \
    negative = ~accumulator[50:50]; \
    magnitude = SUM_OR_NEGATED(0) & (START(0) - 1); \
    moved = 0;
#define EACH_MOVE MOVE(16) MOVE(8) MOVE(4) MOVE(2) MOVE(1)
#else
// Goes through the bins upwards, with the carry of the bin below: first for the sign and the flags, then for the words
// of 32 bits of the magnitude.
#define ADD_FOR_SIGN(at, i) \
    halves.read(accumulator, at + i); \
    flags = flags | accumulator[63:60]; \
    carried = (carried >> 32) + SUM;
#define ADD_FOR_WORD(at, i) \
    halves.read(accumulator, at + i); \
    carried = (carried >> 32) + SUM_OR_NEGATED(i); \
    TAKE_WORD(i, carried[31:0])
#define TAKE_WORD(i, bits) \
    word = bits; \
    magnitude = word == 0 ? magnitude : (bit<64>)(word ++ below); \
    moved = word == 0 ? moved : 32 * i - 24; \
    below = word[31:8] | (word[7:0] == 0 && below == 0 ? 24w0 : 1);
#define GATHER(at) \
    flags = 0; \
    carried = 0; \
    EACH_BIN(ADD_FOR_SIGN, at) \
    negative = ~carried[50:50]; \
    halves.read(accumulator, at); \
    carried = SUM_OR_NEGATED(0); \
    magnitude = (bit<64>)carried[31:0]; \
    moved = 0; \
    below = carried[31:8] | (carried[7:0] == 0 ? 24w0 : 1); \
    EACH_UPPER_BIN(ADD_FOR_WORD, at) \
    TAKE_WORD(8, (bit<32>)carried[49:32])
#define EACH_MOVE MOVE(32) MOVE(16) MOVE(8) MOVE(4) MOVE(2) MOVE(1)
#endif

#define MOVE(by) place = (magnitude >> (place + FRACTION_BITS + by)) != 0 ? place + by : place;

// A sum as a half, rounded to nearest, ties to even. The magnitude is moved down until the leading 1 and the fraction are
// left. The leading 1 makes the exponent field one more than it was moved by; a subnormal is not moved.
#define ENCODE_HALF(b, d, k, low) \
    GATHER(HALF_AT(b, d, k)) \
    place = 0; \
    EACH_MOVE \
    so_far = magnitude + ((64w1 << place) >> 1) - 1 + ((magnitude >> place) & 1); \
    so_far = place == 0 ? magnitude : so_far >> place; \
    half = (bit<16>)so_far + ((moved + (bit<16>)place) << FRACTION_BITS); \
    half = half > INFINITY || flags[2:1] != 0 ? INFINITY : half; \
    half = half | (flags[1:1] == 1 || flags[0:0] == 0 || (negative == 1 && flags[2:2] == 0) ? 16w0x8000 : 0); \
    half = flags[3:3] == 1 || flags[2:1] == 3 ? QUIET_NAN : half; \
    quad = quad | ((bit<64>)half << low);
#define GIVE_QUAD(b, d) \
    quad = 0; \
    ENCODE_HALF(b, d, 0, 0) ENCODE_HALF(b, d, 1, 16) ENCODE_HALF(b, d, 2, 32) ENCODE_HALF(b, d, 3, 48) \
    hdr.halves.q##b##_##d = quad;

#define QUAD_CHECKED(b, d) , hdr.halves.q##b##_##d

#endif
