// switchml.p4 for jobs whose values are float16, half precision of IEEE 754 (docs/numbers.md). Compile-time
// parameters: LANES, SLOTS.
#include <core.p4>
#include <v1model.p4>

#include "include/float16.p4"
#include "include/switchml_halves.p4"
