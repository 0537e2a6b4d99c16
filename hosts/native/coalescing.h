/* How long results gather before the next receive call: docs/hosts.md, "Window and coalescing". */
#ifndef AGGLAB_COALESCING_H
#define AGGLAB_COALESCING_H

#include "structures.h"

/* Notes that `count` results arrived at now_ns. */
void coalescing_arrived(struct coalescing *c, int64_t now_ns, uint32_t count);

int64_t coalescing_wait_ns(const struct coalescing *c, uint32_t in_flight);

#endif
