// ATP-style aggregation (systems/atp/README.md): all jobs share the switch's slots, and a server sums what finds none.
// Compile-time parameters: LANES (values a packet carries), SLOTS (slots of the switch).
#include <core.p4>
#include <v1model.p4>

#include "include/pooling.p4"
