#include <core.p4>
match_kind { exact }
