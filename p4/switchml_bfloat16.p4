// switchml.p4 for jobs whose values are bfloat16 (docs/numbers.md). Compile-time parameters: LANES, SLOTS.
#include <core.p4>
#include <v1model.p4>

#include "include/bfloat16.p4"
#include "include/switchml_halves.p4"
