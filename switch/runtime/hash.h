/* The calculations of BMv2: checksums and hashes over a buffer. */
#ifndef AGGLAB_HASH_H
#define AGGLAB_HASH_H

#include "bytes.h"

/* RFC 1071; an odd last byte is the high half of a word. The sum is taken in host order, 32 bits at a time, which the
 * compiler vectorises, and swapped at the end (RFC 1071, 2B). */
static inline uint64_t hash_csum16(const uint8_t *p, uint32_t len)
{
	uint32_t words = len / 4, rest = len % 4;
	uint64_t sum = 0;
	uint32_t word;

	for (uint32_t i = 0; i < words; i++) {
		memcpy(&word, p + 4 * i, sizeof(word));
		sum += word;
	}
	if (rest) {
		word = 0;
		memcpy(&word, p + 4 * words, rest);
		sum += word;
	}
	while (sum >> 16)
		sum = (sum & 0xffff) + (sum >> 16);
	return __builtin_bswap16((uint16_t)~sum);
}

static inline uint64_t hash_cksum16(const uint8_t *p, uint32_t len)
{
	return hash_csum16(p, len);
}

static inline uint64_t hash_xor(const uint8_t *p, uint32_t len, unsigned int bytes)
{
	uint64_t v = 0;

	for (; len >= bytes; p += bytes, len -= bytes)
		v ^= load_be(p, bytes);
	if (len)
		v ^= load_be(p, len) << 8 * (bytes - len);
	return v;
}

static inline uint64_t hash_xor16(const uint8_t *p, uint32_t len)
{
	return hash_xor(p, len, 2);
}

static inline uint64_t hash_xor32(const uint8_t *p, uint32_t len)
{
	return hash_xor(p, len, 4);
}

static inline uint64_t hash_identity(const uint8_t *p, uint32_t len)
{
	return len ? load_be(p, len < 8 ? len : 8) : 0;
}

/* polynomial without its top term, reflected; bits of a byte lowest first */
static inline uint64_t crc_reflected(const uint8_t *p, uint32_t len, uint64_t polynomial,
				     uint64_t remainder)
{
	while (len--) {
		remainder ^= *p++;
		for (int bit = 0; bit < 8; bit++)
			remainder = remainder >> 1 ^ (remainder & 1 ? polynomial : 0);
	}
	return remainder;
}

/* bits of a byte highest first */
static inline uint64_t crc_plain(const uint8_t *p, uint32_t len, unsigned int bits,
				 uint64_t polynomial, uint64_t remainder)
{
	while (len--) {
		remainder ^= (uint64_t)*p++ << (bits - 8);
		for (int bit = 0; bit < 8; bit++)
			remainder = remainder << 1 ^ (remainder >> (bits - 1) & 1 ? polynomial : 0);
	}
	return low_bits(remainder, bits);
}

static inline uint64_t hash_crc16(const uint8_t *p, uint32_t len)
{
	return crc_reflected(p, len, 0xa001, 0);
}

static inline uint64_t hash_crc32(const uint8_t *p, uint32_t len)
{
	return crc_reflected(p, len, 0xedb88320, 0xffffffff) ^ 0xffffffff;
}

static inline uint64_t hash_crcCCITT(const uint8_t *p, uint32_t len)
{
	return crc_plain(p, len, 16, 0x1021, 0xffff);
}

/* The custom ones with the parameters they have before anybody sets others. */
static inline uint64_t hash_crc8_custom(const uint8_t *p, uint32_t len)
{
	return crc_plain(p, len, 8, 0x07, 0);
}

static inline uint64_t hash_crc16_custom(const uint8_t *p, uint32_t len)
{
	return hash_crc16(p, len);
}

static inline uint64_t hash_crc32_custom(const uint8_t *p, uint32_t len)
{
	return hash_crc32(p, len);
}

static inline uint64_t hash_crc64_custom(const uint8_t *p, uint32_t len)
{
	return crc_reflected(p, len, UINT64_C(0xd800000000000000), 0);
}

/* splitmix64: random() of a seeded pipeline */
static inline uint64_t next_random(uint64_t *state)
{
	uint64_t z = *state += UINT64_C(0x9e3779b97f4a7c15);

	z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
	return z ^ z >> 31;
}

/* low to high inclusive, low <= high; every value equally likely */
static inline uint64_t random_between(uint64_t *state, uint64_t low, uint64_t high)
{
	uint64_t span = high - low + 1;
	uint64_t limit, v;

	if (!span)
		return next_random(state);
	limit = UINT64_MAX - UINT64_MAX % span;
	do {
		v = next_random(state);
	} while (v >= limit);
	return low + v % span;
}

#endif
