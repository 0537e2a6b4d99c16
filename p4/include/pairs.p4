// A call's argument is PAIRS pairs of a place in a map and a value. A place is an index into the pair's own register:
// pair i only ever touches register i, as on hardware, where a packet can touch a register once. P4 has no loops over
// registers, so EACH_PAIR(F) writes F(i) once for every pair.
#ifndef PAIRS_P4
#define PAIRS_P4

#define PAIRS 32

#define PAIRS_8(F, i) F(i##0) F(i##1) F(i##2) F(i##3) F(i##4) F(i##5) F(i##6) F(i##7)
#define EACH_PAIR(F) PAIRS_8(F, a) PAIRS_8(F, b) PAIRS_8(F, c) PAIRS_8(F, d)

const bit<16> NO_PLACE = 0xffff;  // the pair is not used

#define PAIR_FIELDS(i) bit<16> place_##i; bit<32> value_##i;
header pairs_t {
    EACH_PAIR(PAIR_FIELDS)
}

#endif
