/* The Internet checksum's sum of 16-bit words (RFC 1071). */
#ifndef P4NATIVE_CSUM_WORDS_H
#define P4NATIVE_CSUM_WORDS_H

#include <stdint.h>
#include <string.h>

typedef uint32_t csum_lanes __attribute__((vector_size(64)));

/* Returns the sum of whole vectors, not folded. Words are added in pairs; the low words' sum is the difference. */
static inline uint64_t csum_vectors(const uint8_t *p, uint32_t vectors)
{
	csum_lanes both = {0}, high = {0}, low;
	uint64_t sum = 0;

	/* No lane of low or high overflows below 64 bytes * 2^16. */
	for (; vectors; p += sizeof(both), vectors--) {
		csum_lanes words;

		memcpy(&words, p, sizeof(words));
		both += words;
		high += words >> 16;
	}
	low = both - (high << 16);
	for (unsigned int i = 0; i < sizeof(low) / sizeof(low[0]); i++)
		sum += (uint64_t)low[i] + high[i];
	return sum;
}

/* The sum folded to 16 bits, in host order; it is swapped at the end (RFC 1071, 2B). It is 0 only if all bytes are. */
static inline uint64_t csum_words(const uint8_t *p, uint32_t len)
{
	uint32_t vectors = len / sizeof(csum_lanes);
	uint64_t sum = vectors ? csum_vectors(p, vectors) : 0, word = 0;

	p += vectors * sizeof(csum_lanes);
	len -= vectors * sizeof(csum_lanes);
	for (; len >= sizeof(word); p += sizeof(word), len -= sizeof(word)) {
		memcpy(&word, p, sizeof(word));
		sum += (word & UINT32_MAX) + (word >> 32);
	}
	word = 0;
	for (uint32_t i = 0; i < len; i++)
		word |= (uint64_t)p[i] << 8 * i;
	sum += (word & UINT32_MAX) + (word >> 32);
	while (sum >> 16)
		sum = (sum & 0xffff) + (sum >> 16);
	return sum;
}

#endif
