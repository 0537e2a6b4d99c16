#include <core.p4>
if (true) {}
