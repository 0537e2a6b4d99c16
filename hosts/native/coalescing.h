/* How long results gather before the next receive call: docs/hosts.md, "Window and coalescing". Mirrored in
 * hosts/coalescing.py. */
#ifndef AGGLAB_COALESCING_H
#define AGGLAB_COALESCING_H

#include <stdint.h>

struct coalescing {
	double gap_ns; /* mean time from one result to the next */
	int64_t last_ns;
	int64_t most_ns;
	uint32_t buffer_packets; /* how many packets a full buffer holds; 1: each packet comes by itself */
	uint32_t last_count;	 /* results in the last batch */
};

/* Notes that `count` results arrived at now_ns. */
void coalescing_arrived(struct coalescing *c, int64_t now_ns, uint32_t count);

int64_t coalescing_wait_ns(const struct coalescing *c, uint32_t in_flight);

#endif
