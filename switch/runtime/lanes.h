/* Wide fields as vectors of big endian lanes: what ((a & L) + (b & L)) ^ ((a ^ b) & H) computes.
 *
 * out, copy, a and b may be the same bytes or different ones, never overlap in part: each vector is
 * read whole before it is written. */
#ifndef AGGLAB_LANES_H
#define AGGLAB_LANES_H

#include "bytes.h"

#define LANE_ADD(bits, swap)                                                                       \
	static inline void lanes_add_##bits(uint8_t *out, const uint8_t *a, const uint8_t *b,      \
					    uint32_t bytes)                                        \
	{                                                                                          \
		_Pragma("GCC ivdep")                                                               \
		for (uint32_t i = 0; i < bytes; i += sizeof(uint##bits##_t)) {                     \
			uint##bits##_t x, y, sum;                                                  \
                                                                                                   \
			memcpy(&x, a + i, sizeof(x));                                              \
			memcpy(&y, b + i, sizeof(y));                                              \
			sum = (uint##bits##_t)(swap(x) + swap(y));                                 \
			sum = swap(sum);                                                           \
			memcpy(out + i, &sum, sizeof(sum));                                        \
		}                                                                                  \
	}

#define LANE_AS_IS(x) (x)

LANE_ADD(8, LANE_AS_IS)
LANE_ADD(16, __builtin_bswap16)
LANE_ADD(32, __builtin_bswap32)
LANE_ADD(64, __builtin_bswap64)

#endif
