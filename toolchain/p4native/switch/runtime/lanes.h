/* Adds wide fields as vectors of big endian lanes, as ((a & L) + (b & L)) ^ ((a ^ b) & H) does.
 *
 * out, copy, a and b may be the same bytes or different ones, never overlap in part: each vector is
 * read whole before it is written. */
#ifndef P4NATIVE_LANES_H
#define P4NATIVE_LANES_H

#include "bytes.h"

/* As many bytes as one instruction of this processor puts into another order. Compilers do not find such instructions
 * by themselves: they swap the bytes of one lane after the other, on their way from and to memory. */
#ifdef __AVX2__
#define LANES_BYTES 32
#else
#define LANES_BYTES 16
#endif

typedef uint8_t lanes_8 __attribute__((vector_size(LANES_BYTES)));
typedef uint16_t lanes_16 __attribute__((vector_size(LANES_BYTES)));
typedef uint32_t lanes_32 __attribute__((vector_size(LANES_BYTES)));
typedef uint64_t lanes_64 __attribute__((vector_size(LANES_BYTES)));

#define ORDER_8(at) (at), (at) + 1, (at) + 2, (at) + 3, (at) + 4, (at) + 5, (at) + 6, (at) + 7
#define ORDER_16(at) (at) + 1, (at), (at) + 3, (at) + 2, (at) + 5, (at) + 4, (at) + 7, (at) + 6
#define ORDER_32(at) (at) + 3, (at) + 2, (at) + 1, (at), (at) + 7, (at) + 6, (at) + 5, (at) + 4
#define ORDER_64(at) (at) + 7, (at) + 6, (at) + 5, (at) + 4, (at) + 3, (at) + 2, (at) + 1, (at)
#if LANES_BYTES == 32
#define ORDER(bits) ORDER_##bits(0), ORDER_##bits(8), ORDER_##bits(16), ORDER_##bits(24)
#else
#define ORDER(bits) ORDER_##bits(0), ORDER_##bits(8)
#endif

#ifdef __clang__
#define REORDERED(v, bits) __builtin_shufflevector(v, v, ORDER(bits))
#else
#define REORDERED(v, bits) __builtin_shuffle(v, (lanes_8){ORDER(bits)})
#endif

#define LANE_ADD(bits, swap)                                                                       \
	static inline lanes_8 sum_of_lanes_##bits(const uint8_t *a, const uint8_t *b)              \
	{                                                                                          \
		lanes_8 x, y;                                                                      \
                                                                                                   \
		memcpy(&x, a, sizeof(x));                                                          \
		memcpy(&y, b, sizeof(y));                                                          \
		x = REORDERED(x, bits);                                                            \
		y = REORDERED(y, bits);                                                            \
		x = (lanes_8)((lanes_##bits)x + (lanes_##bits)y);                                  \
		return REORDERED(x, bits);                                                         \
	}                                                                                          \
                                                                                                   \
	/* Writes the sums to out and to copy. */                                                      \
	static inline void lanes_add_##bits(uint8_t *out, uint8_t *copy, const uint8_t *a,         \
					    const uint8_t *b, uint32_t bytes)                      \
	{                                                                                          \
		uint32_t i = 0;                                                                    \
                                                                                                   \
		for (; i + LANES_BYTES <= bytes; i += LANES_BYTES) {                               \
			lanes_8 sums = sum_of_lanes_##bits(a + i, b + i);                          \
                                                                                                   \
			memcpy(out + i, &sums, sizeof(sums));                                      \
			memcpy(copy + i, &sums, sizeof(sums));                                     \
		}                                                                                  \
		for (; i < bytes; i += sizeof(uint##bits##_t)) {                                   \
			uint##bits##_t x, y, sum;                                                  \
                                                                                                   \
			memcpy(&x, a + i, sizeof(x));                                              \
			memcpy(&y, b + i, sizeof(y));                                              \
			sum = (uint##bits##_t)(swap(x) + swap(y));                                 \
			sum = swap(sum);                                                           \
			memcpy(out + i, &sum, sizeof(sum));                                        \
			memcpy(copy + i, &sum, sizeof(sum));                                       \
		}                                                                                  \
	}

#define LANE_AS_IS(x) (x)

LANE_ADD(8, LANE_AS_IS)
LANE_ADD(16, __builtin_bswap16)
LANE_ADD(32, __builtin_bswap32)
LANE_ADD(64, __builtin_bswap64)

#endif
