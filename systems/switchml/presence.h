/* Sums that may lack workers (docs/partial-sums.md). A packet of version 2 says after its header whose contributions
 * are in it, one bit per worker. */
#ifndef AGGLAB_PRESENCE_H
#define AGGLAB_PRESENCE_H

#include <endian.h>
#include <string.h>

#include "quantise.h"
#include "state.h"
#include "wire.h"

static inline uint64_t presence_of(const uint8_t *datagram)
{
	uint64_t workers;

	memcpy(&workers, datagram + WIRE_HEADER_BYTES, sizeof(workers));
	return be64toh(workers);
}

static inline uint32_t presence_count(uint64_t workers)
{
	return (uint32_t)__builtin_popcountll(workers);
}

static inline void presence_take(struct presence *p, uint32_t chunk, uint64_t workers, uint32_t all)
{
	uint32_t count = presence_count(workers);

	p->of_chunks[chunk] = workers;
	p->partial += count < all;
	p->absent += all - count;
}

/* Turns sums of `count` of `all` workers into floats, scaled as if the missing workers had the mean of the others. */
static inline void dequantise_partial(const uint32_t *restrict sums, uint64_t length, uint8_t exponent,
				      uint32_t value_bits, uint32_t count, uint32_t all, float *restrict out)
{
	double unit = power_of_two(-scale_log2(exponent, value_bits));

	for (uint64_t i = 0; i < length; i++)
		out[i] = (float)((int32_t)wire_order(sums[i]) * unit * all / count);
}

#endif
