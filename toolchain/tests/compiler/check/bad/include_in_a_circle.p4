#include "include_in_a_circle.p4"
