/* An estimate of the time between results (see coalescing.h). */
#include "coalescing.h"

#define PARTS 4 /* results gather while one of so many parts of the packets in flight is answered */
#define WEIGHT 8 /* of the mean before, to that of a new gap */

void coalescing_arrived(struct coalescing *c, int64_t now_ns, uint32_t count)
{
	double gap_ns;

	c->last_count = count;
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
	uint32_t enough = in_flight / PARTS;
	double wait_ns;

	if (c->buffer_packets > 1) {
		enough = enough < c->buffer_packets ? enough : c->buffer_packets;
		if (c->last_count >= enough)
			return 0;
	}
	wait_ns = c->gap_ns * enough;
	return wait_ns < (double)c->most_ns ? (int64_t)wait_ns : c->most_ns;
}
