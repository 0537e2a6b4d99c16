#include <core.p4>
const error e = error.NoEror;
