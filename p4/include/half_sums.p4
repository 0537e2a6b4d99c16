// Sums of floats of 16 bits ("halves"), exact until they are rounded (docs/numbers.md). Every finite half is a whole
// number of units, the smallest subnormal. A slot has BINS accumulators for each half, as 32 exponents share a bin: in
// bin i, 1 stands for 2^(32 * i) units. An accumulator:
//   bits 0-59  START(i) and the sum of what was added to bin i, which is below 2^46 in magnitude
//   bit 60     some addend was not -0      bit 62     some addend was +Inf
//   bit 61     some addend was -Inf        bit 63     some addend was NaN
//
// The format is that of float16.p4 or bfloat16.p4: FRACTION_BITS, BINS, INFINITY, QUIET_NAN, and how bins become one
// number. GATHER sets `negative`, `flags` and the magnitude of a sum without its `moved` lowest bits. If one of these
// bits is set, so is the lowest bit of the magnitude, which has 25 bits or more then. EACH_MOVE finds its leading 1.
#ifndef HALF_SUMS_P4
#define HALF_SUMS_P4

#define FIELD 14:FRACTION_BITS
#define FRACTION FRACTION_BITS - 1:0

#define SUM_BITS       ((64w1 << 60) - 1)
#define NOT_MINUS_ZERO (64w1 << 60)
#define MINUS_INFINITY (64w1 << 61)
#define PLUS_INFINITY  (64w1 << 62)
#define NOT_A_NUMBER   (64w1 << 63)

// All bins together start at 2^(50 + 32 * (BINS - 1)) units, so that none becomes negative: the excess of bin i is what
// bin i + 1 lacks.
#define START(i) ((64w1 << 50) - (i == 0 ? 64w0 : 1 << 18))

#define CELL_BINS (2 * LANES * BINS)

#define SUM (accumulator & SUM_BITS)
#define SUM_OR_NEGATED(i) (negative == 0 ? SUM : 2 * START(i) - SUM)
#define MOVE(by) place = (magnitude >> (place + FRACTION_BITS + by)) != 0 ? place + by : place;

control HalfSums(inout headers_t hdr, inout metadata_t meta) {
    register<bit<64>>(CELLS * CELL_BINS) halves;

    action clear_halves() {
        bit<32> first = meta.cell * CELL_BINS;
        for (bit<32> i = 0; i < CELL_BINS; i = i + 1) {
            halves.write(first + i, i % BINS == 0 ? START(0) : START(1));
        }
    }

    // Each quad is turned by one half after the other, and is in the end as it came. The magnitude of a half is its
    // fraction (with the leading 1, if the half is normal), shifted left by the exponent field minus one.
    action take_halves() {
        bit<32> first = meta.cell * CELL_BINS;
        for (bit<32> i = 0; i < 2 * LANES; i = i + 1) {
            bit<64> quad = hdr.quads[i >> 2].halves;
            bit<16> half = quad[63:48];
            hdr.quads[i >> 2].halves = quad[47:0] ++ half;
            bit<8> place = half[FIELD] == 0 ? 0 : (bit<8>)half[FIELD] - 1;
            bit<64> magnitude = ((bit<64>)half[FRACTION] | (half[FIELD] == 0 ? 64w0 : 1 << FRACTION_BITS))
                                << (place & 31);
            bit<64> addend = ((half[15:15] == 1 ? 0 - magnitude : magnitude) & SUM_BITS)
                             | (half == 0x8000 ? 64w0 : NOT_MINUS_ZERO);
            addend = (half & INFINITY) != INFINITY ? addend : NOT_MINUS_ZERO
                     | (half[FRACTION] != 0 ? NOT_A_NUMBER : (half[15:15] == 1 ? MINUS_INFINITY : PLUS_INFINITY));
            bit<32> bin = first + i * BINS + (bit<32>)(place >> 5);
            bit<64> so_far;
            halves.read(so_far, bin);
            halves.write(bin, ((addend + so_far) & SUM_BITS) | ((addend | so_far) & ~SUM_BITS));
        }
    }

    // Replaces the packet's halves by the sums, rounded to nearest, ties to even. The magnitude of a sum is moved down
    // until the leading 1 and the fraction are left. The leading 1 makes the exponent field one more than it was moved
    // by; a subnormal is not moved.
    action give_halves() {
        bit<32> first = meta.cell * CELL_BINS;
        for (bit<32> i = 0; i < 2 * LANES; i = i + 1) {
            bit<32> bin = first + i * BINS;
            bit<64> accumulator;
            bit<64> magnitude;
            bit<16> moved;
            bit<1> negative;
            bit<4> flags;
            GATHER
            bit<8> place = 0;
            EACH_MOVE
            bit<64> rounded = magnitude + ((64w1 << place) >> 1) - 1 + ((magnitude >> place) & 1);
            rounded = place == 0 ? magnitude : rounded >> place;
            bit<16> half = (bit<16>)rounded + ((moved + (bit<16>)place) << FRACTION_BITS);
            half = half > INFINITY || flags[2:1] != 0 ? INFINITY : half;
            half = half | (flags[1:1] == 1 || flags[0:0] == 0 || (negative == 1 && flags[2:2] == 0) ? 16w0x8000 : 0);
            half = flags[3:3] == 1 || flags[2:1] == 3 ? QUIET_NAN : half;
            hdr.quads[i >> 2].halves = hdr.quads[i >> 2].halves[47:0] ++ half;
        }
    }

    // Each action is called once, because every call copies its code. A partial sum is rounded before it goes up, too.
    apply {
        if (hdr.quads[0].isValid() && meta.counted) {
            if (meta.before == 0) {
                clear_halves();
            }
            take_halves();
        }
        if (hdr.quads[0].isValid() && meta.answered) {
            give_halves();
        }
    }
}

#endif
