#include "sums.h"

#include <math.h>
#include <string.h>

static uint32_t magnitude_bits(float value)
{
	uint32_t bits;

	memcpy(&bits, &value, sizeof(bits));
	return bits & 0x7FFFFFFFu;
}

static double within(double value, double limit)
{
	if (value < -limit)
		return -limit;
	return value > limit ? limit : value;
}

void sums_add(const struct sums *sums, const float *restrict from)
{
	const double *restrict scale = sums->scale;
	double *restrict total = sums->total, *restrict values = sums->values;
	uint32_t *restrict largest = sums->largest;
	double limit = sums->limit;

	for (uint64_t i = 0, count = sums->count; i < count; i++) {
		double value = from[i];
		uint32_t bits = magnitude_bits(from[i]);

		values[i] += value;
		total[i] += within(rint(value * scale[i]), limit);
		largest[i] = bits > largest[i] ? bits : largest[i];
	}
}
