#include <core.p4>
extern e {
    e();
}
e() main;
