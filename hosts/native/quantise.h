/* float32 <-> int32 by powers of two, one chunk at a time: docs/protocol.md, "Integers and floats".
 *
 * All arithmetic is in double, where value * 2^k is exact, so every result is rounded once. The loops
 * have no branches and no calls: the compiler turns them into vector code.
 */
#ifndef AGGLAB_QUANTISE_H
#define AGGLAB_QUANTISE_H

#include <stdint.h>
#include <string.h>

#define FLOAT_EXPONENT_SHIFT 23
#define EXPONENT_NOT_FINITE 255
/* Adding 1.5 * 2^52 leaves rint(y), as a 32-bit two's complement number, in a double's low bits. */
#define ROUNDING_MAGIC 6755399441055744.0

static inline double power_of_two(int k)
{
	uint64_t bits = (uint64_t)(1023 + k) << 52;
	double power;

	memcpy(&power, &bits, sizeof(power));
	return power;
}

/* k of scale = 2^k: values are below 2^(exponent - 126), integers below 2^value_bits. */
static inline int scale_log2(uint8_t exponent, uint32_t value_bits)
{
	return (int)value_bits - ((exponent ? exponent : 1) - 126);
}

static inline uint32_t wire_order(uint32_t value)
{
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
	return __builtin_bswap32(value);
#else
	return value;
#endif
}

/* The largest IEEE-754 exponent field among count floats; 255 if one of them is Inf or NaN. */
static inline uint8_t largest_exponent(const float *values, uint64_t count)
{
	int32_t largest = 0;

	for (uint64_t i = 0; i < count; i++) {
		int32_t bits;

		memcpy(&bits, &values[i], sizeof(bits));
		bits &= 0x7fffffff;
		largest = bits > largest ? bits : largest;
	}
	return (uint8_t)(largest >> FLOAT_EXPONENT_SHIFT);
}

static inline uint32_t quantise_one(float value, double scale, double limit)
{
	double scaled = value * scale;
	uint64_t bits;

	scaled = scaled > limit ? limit : scaled;
	scaled = scaled < -limit ? -limit : scaled;
	scaled += ROUNDING_MAGIC;
	memcpy(&bits, &scaled, sizeof(bits));
	return (uint32_t)bits;
}

/* A chunk whose exponent says that somebody holds Inf or NaN becomes zeros. */
static inline void quantise(const float *restrict values, uint64_t count, uint8_t exponent, uint32_t value_bits,
			    uint32_t *restrict out, int to_wire)
{
	double scale = power_of_two(scale_log2(exponent, value_bits));
	double limit = (double)((1u << value_bits) - 1);

	if (exponent == EXPONENT_NOT_FINITE) {
		memset(out, 0, count * sizeof(*out));
	} else if (to_wire) {
		for (uint64_t i = 0; i < count; i++)
			out[i] = wire_order(quantise_one(values[i], scale, limit));
	} else {
		for (uint64_t i = 0; i < count; i++)
			out[i] = quantise_one(values[i], scale, limit);
	}
}

static inline void dequantise(const uint32_t *restrict sums, uint64_t count, uint8_t exponent, uint32_t value_bits,
			      float *restrict out, int from_wire)
{
	double unit = power_of_two(-scale_log2(exponent, value_bits));

	if (from_wire) {
		for (uint64_t i = 0; i < count; i++)
			out[i] = (float)((int32_t)wire_order(sums[i]) * unit);
	} else {
		for (uint64_t i = 0; i < count; i++)
			out[i] = (float)((int32_t)sums[i] * unit);
	}
}

#endif
