// ESA-style aggregation (systems/esa/README.md): slots that all jobs share, and that a chunk of a higher priority takes
// over. Compile-time parameters: LANES (values a packet carries), SLOTS (slots of the switch).
#include <core.p4>
#include <v1model.p4>

#define PREEMPTION
#include "include/pooling.p4"
