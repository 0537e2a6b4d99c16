#include <core.p4>
const bool fits = static_assert(1 + 1 == 3, "arithmetic is broken");
