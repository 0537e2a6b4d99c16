#include "student.inc"
control C() {
    apply { }
}
C() main;
