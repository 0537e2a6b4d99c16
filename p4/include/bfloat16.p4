// bfloat16, the upper half of a float32: a fraction of 7 bits, and an exponent field of 8. half_sums.p4 has the sums.
const bit<8> BFLOAT = 7;
#define HALVES_KIND BFLOAT

const bit<16> INFINITY  = 0x7f80;
const bit<16> QUIET_NAN = 0x7fc0;
#define FRACTION_BITS 7
#define BINS 8

#define EACH_UPPER_BIN(F) F(1) F(2) F(3) F(4) F(5) F(6) F(7)
// Goes through the bins upwards, with the carry of the bin below: first for the sign and the flags, then for the words
// of 32 bits of the magnitude.
#define ADD_FOR_SIGN(i) \
            halves.read(accumulator, bin + i); \
            flags = flags | accumulator[63:60]; \
            carried = (carried >> 32) + SUM;
#define ADD_FOR_WORD(i) \
            halves.read(accumulator, bin + i); \
            carried = (carried >> 32) + SUM_OR_NEGATED(i); \
            TAKE_WORD(i, carried[31:0])
#define TAKE_WORD(i, bits) \
            word = bits; \
            magnitude = word == 0 ? magnitude : (bit<64>)(word ++ below); \
            moved = word == 0 ? moved : 32 * i - 24; \
            below = word[31:8] | (word[7:0] == 0 && below == 0 ? 24w0 : 1);
#define GATHER \
            bit<64> carried = 0; \
            bit<32> word; \
            flags = 0; \
            ADD_FOR_SIGN(0) EACH_UPPER_BIN(ADD_FOR_SIGN) \
            negative = ~carried[50:50]; \
            halves.read(accumulator, bin); \
            carried = SUM_OR_NEGATED(0); \
            magnitude = (bit<64>)carried[31:0]; \
            moved = 0; \
            bit<24> below = carried[31:8] | (carried[7:0] == 0 ? 24w0 : 1); \
            EACH_UPPER_BIN(ADD_FOR_WORD) \
            TAKE_WORD(8, (bit<32>)carried[49:32])
#define EACH_MOVE MOVE(32) MOVE(16) MOVE(8) MOVE(4) MOVE(2) MOVE(1)
