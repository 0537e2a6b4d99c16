/* float32 <-> int32 by powers of two, one chunk at a time: docs/protocol.md, "Integers and floats".
 *
 * All arithmetic is in double, where value * 2^k is exact, so every result is rounded once. The loops
 * have no branches and no calls: the compiler turns them into vector code.
 */
#ifndef AGGLAB_QUANTISE_H
#define AGGLAB_QUANTISE_H

#include <stdint.h>
#include <string.h>

#include "structures.h"

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

static inline void copy_in_wire_order(const uint32_t *restrict from, uint64_t count, uint32_t *restrict to)
{
	for (uint64_t i = 0; i < count; i++)
		to[i] = wire_order(from[i]);
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

/* Quantises a chunk. It becomes zeros if the exponent says that a worker holds Inf or NaN. */
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

/* The finaliser of SplitMix64 (Steele, Lea and Flood, OOPSLA 2014). */
static inline uint64_t mix(uint64_t x)
{
	x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9;
	x = (x ^ x >> 27) * 0x94d049bb133111eb;
	return x ^ x >> 31;
}

/* A number from 0 to just below 1 that depends on the value's bits and its place in the tensor. */
static inline double noise(uint64_t key, uint64_t index, float value)
{
	uint32_t bits;

	memcpy(&bits, &value, sizeof(bits));
	return (double)(mix(mix(key + index) + bits) >> 11) * 0x1p-53;
}

static inline int64_t round_down(double value)
{
	int64_t whole = (int64_t)value;

	return whole - ((double)whole > value);
}

/* Quantises into big endian integers, and counts what is lost. first: the index of values[0] in the tensor. A double
 * holds every product of a float and a power of two exactly; products beyond the limit are cut before they become
 * integers. */
static inline void quantise_fixed(struct fixed_point *own, const float *values, uint64_t first, uint64_t count,
				  uint8_t exponent, uint32_t value_bits, uint32_t *out)
{
	double scale = power_of_two(scale_log2(exponent, value_bits));
	int64_t limit = (int64_t)(1u << value_bits) - 1;

	for (uint64_t i = 0; i < count; i++) {
		double scaled = exponent == EXPONENT_NOT_FINITE ? 0 : values[i] * scale;
		double beyond = (double)limit + 1;
		int64_t whole;

		scaled = scaled > beyond ? beyond : scaled < -beyond ? -beyond : scaled;
		if (own->noise_key)
			whole = round_down(scaled + noise(own->noise_key, first + i, values[i]));
		else
			whole = (int64_t)(scaled + ROUNDING_MAGIC - ROUNDING_MAGIC);
		own->clipped += whole > limit || whole < -limit;
		own->vanished += !whole && scaled != 0;
		whole = whole > limit ? limit : whole < -limit ? -limit : whole;
		out[i] = wire_order((uint32_t)whole);
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
