// float16, half precision of IEEE 754: a fraction of 10 bits, and an exponent field of 5. half_sums.p4 has the sums.
const bit<8> HALF = 3;
#define HALVES_KIND HALF

const bit<16> INFINITY  = 0x7c00;
const bit<16> QUIET_NAN = 0x7e00;
#define FRACTION_BITS 10
#define BINS 1

#define GATHER \
            halves.read(accumulator, bin); \
            flags = accumulator[63:60]; \
            negative = ~accumulator[50:50]; \
            magnitude = SUM_OR_NEGATED(0) & (START(0) - 1); \
            moved = 0;
#define EACH_MOVE MOVE(16) MOVE(8) MOVE(4) MOVE(2) MOVE(1)
