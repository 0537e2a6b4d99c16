#include <core.p4>
error { NoMatch }
