#include "student.inc"
#define WIDTH 16;
header wide_t {
    bit<WIDTH> x;
}
