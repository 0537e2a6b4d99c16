/* Narrow integers, as p4/include/narrow.p4 takes them: a unit of twice as many bits holds two (docs/numbers.md, "Fewer
 * bits on the wire"). On the wire 2^(bits - 1) is added to each integer, so that all are above 0. A sum has a unit of
 * its own, big endian. */
#ifndef AGGLAB_NARROW_H
#define AGGLAB_NARROW_H

#include <stdint.h>

#include "quantise.h"

#define NARROW_GROUP_LANES 64 /* a switch's longest word */
#define NARROW_GROUP_VALUES_MAX 256

/* How many integers so many lanes hold. */
static inline uint64_t narrow_values(uint64_t lanes, uint32_t bits)
{
	return lanes * 16 / bits;
}

static inline uint32_t narrow_zero(uint32_t bits)
{
	return 1u << (bits - 1);
}

static inline void narrow_put_unit(uint8_t *units, uint64_t index, uint32_t bits, uint32_t unit)
{
	uint32_t bytes = bits / 4;

	for (uint32_t i = 0; i < bytes; i++)
		units[index * bytes + i] = (uint8_t)(unit >> 8 * (bytes - 1 - i));
}

static inline uint32_t narrow_unit(const uint8_t *units, uint64_t index, uint32_t bits)
{
	uint32_t bytes = bits / 4, unit = 0;

	for (uint32_t i = 0; i < bytes; i++)
		unit = unit << 8 | units[index * bytes + i];
	return unit;
}

/* Packs one group of integers: those of its first half go to the upper halves of the units, those of its second half to
 * the lower halves. Values from `count` on are missing, and add nothing to a sum. */
static inline void narrow_pack(const uint32_t *integers, uint64_t count, uint64_t values, uint32_t bits, uint8_t *units)
{
	uint64_t half = values / 2;

	for (uint64_t i = 0; i < half; i++) {
		uint32_t upper = i < count ? wire_order(integers[i]) + narrow_zero(bits) : 0;
		uint32_t lower = half + i < count ? wire_order(integers[half + i]) + narrow_zero(bits) : 0;

		narrow_put_unit(units, i, bits, upper << bits | lower);
	}
}

/* Reads sums, each of one integer from every worker. */
static inline void narrow_sums(const uint8_t *units, uint64_t first, uint64_t count, uint32_t bits, uint32_t workers,
			       uint32_t *sums)
{
	for (uint64_t i = 0; i < count; i++)
		sums[i] = narrow_unit(units, first + i, bits) - workers * narrow_zero(bits);
}

#endif
