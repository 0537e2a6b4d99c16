/* An estimate of the time between results (see coalescing.h). */
#include "coalescing.h"

#define WEIGHT 8 /* of the mean before, to that of a new gap */

void coalescing_arrived(struct coalescing *c, int64_t now_ns, uint32_t count)
{
	double gap_ns;

	if (!count)
		return;
	gap_ns = (double)(now_ns - c->last_ns) / count;
	if (gap_ns > (double)c->most_ns)
		gap_ns = (double)c->most_ns;
	c->gap_ns += (gap_ns - c->gap_ns) / WEIGHT;
	c->last_ns = now_ns;
}

int64_t coalescing_wait_ns(const struct coalescing *c, uint32_t in_flight)
{
	double wait_ns = c->gap_ns * (in_flight / c->parts);

	return wait_ns < (double)c->most_ns ? (int64_t)wait_ns : c->most_ns;
}
