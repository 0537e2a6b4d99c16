// Says which workers are in a sum, if chunks may be closed without late workers (docs/partial-sums.md). In version 2
// this header follows the aggregation header. Compile-time parameters: DEADLINE (how long a chunk waits for the others
// once its first contribution has come, in microseconds), SETS (the sets of a slot: a power of two).
#ifndef PRESENCE_P4
#define PRESENCE_P4

#ifndef SETS
#define SETS 8
#endif
#if SETS == 2
#define SET_BITS 1
#define EACH_EARLIER(F) F(1) F(2)
#elif SETS == 4
#define SET_BITS 2
#define EACH_EARLIER(F) F(1) F(2) F(3) F(4)
#elif SETS == 8
#define SET_BITS 3
#define EACH_EARLIER(F) F(1) F(2) F(3) F(4) F(5) F(6) F(7) F(8)
#elif SETS == 16
#define SET_BITS 4
#define EACH_EARLIER(F) F(1) F(2) F(3) F(4) F(5) F(6) F(7) F(8) \
    F(9) F(10) F(11) F(12) F(13) F(14) F(15) F(16)
#else
#error "SETS must be 2, 4, 8 or 16"
#endif

header presence_t {
    bit<64> workers;  // the workers whose contributions are in a result; ignored in a contribution
}

#endif
