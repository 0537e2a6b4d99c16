/* Numbers in network byte order, and the Internet checksum (RFC 1071). */
#ifndef P4NATIVE_INTERNET_H
#define P4NATIVE_INTERNET_H

#include <stdint.h>
#include <string.h>

#include "csum_words.h"

static inline uint16_t load16(const uint8_t *at)
{
	return (uint16_t)(at[0] << 8 | at[1]);
}

static inline void store16(uint8_t *at, uint16_t value)
{
	at[0] = (uint8_t)(value >> 8);
	at[1] = (uint8_t)value;
}

static inline uint32_t load32(const uint8_t *at)
{
	return (uint32_t)load16(at) << 16 | load16(at + 2);
}

static inline void store32(uint8_t *at, uint32_t value)
{
	store16(at, (uint16_t)(value >> 16));
	store16(at + 2, (uint16_t)value);
}

/* The sum of 16-bit words plus start, folded, not complemented. */
static inline uint16_t ones_sum(uint32_t start, const uint8_t *data, uint32_t len)
{
	uint16_t folded = (uint16_t)csum_words(data, len);
	uint64_t sum = (uint64_t)start + load16((const uint8_t *)&folded);

	while (sum >> 16)
		sum = (sum & 0xffff) + (sum >> 16);
	return (uint16_t)sum;
}

#endif
