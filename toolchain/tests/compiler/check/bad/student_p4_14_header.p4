#include <core.p4>
#include <v1model.p4>
header_type a_t { fields { a : 8; } }
