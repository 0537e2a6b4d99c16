/* Numbers in the order of the network, and the Internet checksum (RFC 1071). */
#ifndef AGGLAB_INTERNET_H
#define AGGLAB_INTERNET_H

#include <stdint.h>
#include <string.h>

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

/* The sum of 16-bit words plus start, folded, not complemented. Adds 32 bits at a time in the machine's order: the sum
 * is the same in either but for the order of its two bytes (RFC 1071, section 2B). */
static inline uint16_t ones_sum(uint32_t start, const uint8_t *data, uint32_t len)
{
	uint64_t sum = 0;
	uint32_t words = len / 4, rest = len % 4;
	uint8_t last[4] = {0};
	uint32_t word;
	uint16_t folded;

	for (uint32_t i = 0; i < words; i++) {
		memcpy(&word, data + 4 * (uint64_t)i, sizeof(word));
		sum += word;
	}
	memcpy(last, data + len - rest, rest);
	memcpy(&word, last, sizeof(word));
	sum += word;
	while (sum >> 16)
		sum = (sum & 0xffff) + (sum >> 16);
	folded = (uint16_t)sum;
	sum = (uint64_t)start + load16((const uint8_t *)&folded);
	while (sum >> 16)
		sum = (sum & 0xffff) + (sum >> 16);
	return (uint16_t)sum;
}

#endif
