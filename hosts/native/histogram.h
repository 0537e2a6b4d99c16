/* A log-linear histogram of times, as HdrHistogram's: each octave of nanoseconds has 32 buckets, so the width of a
 * bucket is at most 1/32 of the times in it. hosts/histogram.py declares it.
 */
#ifndef AGGLAB_HISTOGRAM_H
#define AGGLAB_HISTOGRAM_H

#include "structures.h"

/* Counts a time; a negative one counts as 0. */
static inline void histogram_add(struct histogram *h, int64_t time_ns)
{
	uint64_t time = time_ns < 0 ? 0 : time_ns > HISTOGRAM_LAST_NS ? HISTOGRAM_LAST_NS : time_ns;
	int octave = 63 - __builtin_clzll(time | 1);
	int shift = octave > HISTOGRAM_BITS ? octave - HISTOGRAM_BITS : 0;

	h->counts[((uint64_t)shift << HISTOGRAM_BITS) + (time >> shift)]++;
}

#endif
