#include "student.inc"
struct queue_t
    bit<8> length;
    bit<8> id;
}
