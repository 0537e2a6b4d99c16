#include <core.p4>
struct meta_t { bit<16> tag; }
control C(inout meta_t meta, inout standard_metadata_t std) {
    register<bit<16>>(16) tags;
    counter(16, CounterType.packets) passed;
    apply {
        mark_to_drop(std);
    }
}
