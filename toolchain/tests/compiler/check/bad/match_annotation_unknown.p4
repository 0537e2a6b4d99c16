#include <core.p4>
struct keys { @match(nearly) bit<8> x; }
