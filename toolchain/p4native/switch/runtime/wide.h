/* Integers wider than a machine word: n limbs of 64 bits, lowest first, two's complement.
 * Results are exact modulo 2^(64 n); an output may be one of its inputs except where said. */
#ifndef P4NATIVE_WIDE_H
#define P4NATIVE_WIDE_H

#include "bytes.h"

#define WIDE_MAX_LIMBS 514

static inline bool wide_negative(const uint64_t *a, unsigned int n)
{
	return a[n - 1] >> 63;
}

static inline void wide_set(uint64_t *r, unsigned int n, uint64_t low, bool negative)
{
	r[0] = low;
	for (unsigned int i = 1; i < n; i++)
		r[i] = negative ? UINT64_MAX : 0;
}

/* Loads from big endian bytes; keeps the lowest n limbs. */
static inline void wide_load(uint64_t *r, unsigned int n, const uint8_t *p, uint32_t bytes)
{
	for (unsigned int i = 0; i < n; i++) {
		uint32_t end = 8 * (i + 1);

		if (end <= bytes)
			r[i] = be64(p + bytes - end);
		else
			r[i] = bytes + 8 > end ? load_be(p, bytes + 8 - end) : 0;
	}
}

static inline void wide_sign_extend(uint64_t *r, unsigned int n, uint32_t bits)
{
	unsigned int limb = (bits - 1) / 64, top = (bits - 1) % 64;

	if (limb >= n)
		return;
	r[limb] = sign_extend(r[limb], top + 1);
	for (unsigned int i = limb + 1; i < n; i++)
		r[i] = wide_negative(r, limb + 1) ? UINT64_MAX : 0;
}

/* Stores `bits` bits in (bits + 7) / 8 big endian bytes. Missing limbs extend the sign. */
static inline void wide_store(uint8_t *p, uint32_t bits, const uint64_t *a, unsigned int n)
{
	uint32_t bytes = (bits + 7) / 8;
	uint8_t fill = wide_negative(a, n) ? 0xff : 0;

	for (uint32_t i = 0; i < bytes; i++)
		p[bytes - 1 - i] = i / 8 < n ? (uint8_t)(a[i / 8] >> (8 * (i % 8))) : fill;
	if (bits % 8)
		p[0] &= (uint8_t)((1u << bits % 8) - 1);
}

static inline void wide_add(uint64_t *r, const uint64_t *a, const uint64_t *b, unsigned int n)
{
	uint64_t carry = 0;

	for (unsigned int i = 0; i < n; i++) {
		unsigned __int128 v = (unsigned __int128)a[i] + b[i] + carry;

		r[i] = (uint64_t)v;
		carry = (uint64_t)(v >> 64);
	}
}

static inline void wide_sub(uint64_t *r, const uint64_t *a, const uint64_t *b, unsigned int n)
{
	uint64_t borrow = 0;

	for (unsigned int i = 0; i < n; i++) {
		unsigned __int128 v = (unsigned __int128)a[i] - b[i] - borrow;

		r[i] = (uint64_t)v;
		borrow = (uint64_t)(v >> 64) & 1;
	}
}

static inline void wide_negate(uint64_t *r, const uint64_t *a, unsigned int n)
{
	uint64_t carry = 1;

	for (unsigned int i = 0; i < n; i++) {
		r[i] = ~a[i] + carry;
		carry = carry && !r[i];
	}
}

/* r is neither a nor b */
static inline void wide_mul(uint64_t *r, const uint64_t *a, const uint64_t *b, unsigned int n)
{
	memset(r, 0, n * sizeof(*r));
	for (unsigned int i = 0; i < n; i++) {
		uint64_t carry = 0;

		for (unsigned int j = 0; i + j < n; j++) {
			unsigned __int128 v = (unsigned __int128)a[i] * b[j] + r[i + j] + carry;

			r[i + j] = (uint64_t)v;
			carry = (uint64_t)(v >> 64);
		}
	}
}

static inline int wide_compare_unsigned(const uint64_t *a, const uint64_t *b, unsigned int n)
{
	while (n--) {
		if (a[n] != b[n])
			return a[n] < b[n] ? -1 : 1;
	}
	return 0;
}

static inline int wide_compare(const uint64_t *a, const uint64_t *b, unsigned int n)
{
	if (wide_negative(a, n) != wide_negative(b, n))
		return wide_negative(a, n) ? -1 : 1;
	return wide_compare_unsigned(a, b, n);
}

static inline void wide_shift_left(uint64_t *r, const uint64_t *a, uint32_t amount, unsigned int n)
{
	unsigned int limbs = amount / 64, bits = amount % 64;

	for (unsigned int i = n; i--;) {
		uint64_t high = i >= limbs ? a[i - limbs] : 0;
		uint64_t low = i > limbs ? a[i - limbs - 1] : 0;

		r[i] = bits ? high << bits | low >> (64 - bits) : high;
	}
}

/* Shifts right, rounding towards minus infinity. */
static inline void wide_shift_right(uint64_t *r, const uint64_t *a, uint32_t amount, unsigned int n)
{
	uint64_t fill = wide_negative(a, n) ? UINT64_MAX : 0;
	uint64_t limbs = amount / 64;
	unsigned int bits = amount % 64;

	for (unsigned int i = 0; i < n; i++) {
		uint64_t low = i + limbs < n ? a[i + limbs] : fill;
		uint64_t high = i + limbs + 1 < n ? a[i + limbs + 1] : fill;

		r[i] = bits ? low >> bits | high << (64 - bits) : low;
	}
}

/* Both inputs are at least 0, and b is not 0. quotient and remainder must not be inputs. */
static inline void wide_divide_magnitudes(uint64_t *quotient, uint64_t *remainder,
					  const uint64_t *a, const uint64_t *b, unsigned int n)
{
	memset(quotient, 0, n * sizeof(*quotient));
	memset(remainder, 0, n * sizeof(*remainder));
	for (unsigned int i = 64 * n; i--;) {
		uint64_t out = remainder[n - 1] >> 63;

		wide_shift_left(remainder, remainder, 1, n);
		remainder[0] |= a[i / 64] >> (i % 64) & 1;
		if (out || wide_compare_unsigned(remainder, b, n) >= 0) {
			wide_sub(remainder, remainder, b, n);
			quotient[i / 64] |= UINT64_C(1) << (i % 64);
		}
	}
}

/* Divides like divide() and modulo() of bytes.h. result must be neither a nor b. */
static inline void wide_divide(uint64_t *result, const uint64_t *a, const uint64_t *b,
			       unsigned int n, bool want_remainder)
{
	uint64_t left[WIDE_MAX_LIMBS], right[WIDE_MAX_LIMBS], other[WIDE_MAX_LIMBS];
	bool negative_a = wide_negative(a, n), negative_b = wide_negative(b, n);
	bool zero = true, negative;

	for (unsigned int i = 0; i < n; i++) {
		left[i] = a[i];
		right[i] = b[i];
		zero = zero && !b[i];
	}
	memset(result, 0, n * sizeof(*result));
	if (zero)
		return;
	if (negative_a)
		wide_negate(left, left, n);
	if (negative_b)
		wide_negate(right, right, n);
	if (want_remainder)
		wide_divide_magnitudes(other, result, left, right, n);
	else
		wide_divide_magnitudes(result, other, left, right, n);
	negative = want_remainder ? negative_a : negative_a != negative_b;
	if (negative)
		wide_negate(result, result, n);
}

#endif
