// Says which workers are in a sum, if chunks may be closed without late workers (docs/partial-sums.md). In version 2
// this header follows the aggregation header. Compile-time parameters: DEADLINE (how long a chunk waits for the others
// once its first contribution has come, in microseconds), SETS (the sets of a slot: a power of two).
#ifndef PRESENCE_P4
#define PRESENCE_P4

#include "aggregation_headers.p4"

#ifndef DEADLINE
#define DEADLINE 50000
#endif

#ifndef SETS
#define SETS 8
#endif
const bool SETS_FIT = static_assert(SETS == 2 || SETS == 4 || SETS == 8 || SETS == 16, "SETS must be 2, 4, 8 or 16");

const bit<8>  PRESENCE_VERSION = VERSION + 1;
const bit<16> PRESENCE_LENGTH  = 8;

header presence_t {
    bit<64> workers;  // the workers whose contributions are in a result; ignored in a contribution
}

#endif
