#include <core.p4>
#include "nowhere.p4"
