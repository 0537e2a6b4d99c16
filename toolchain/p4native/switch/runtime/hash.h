/* The calculations of BMv2: checksums and hashes over a buffer. */
#ifndef P4NATIVE_HASH_H
#define P4NATIVE_HASH_H

#include "bytes.h"
#include "csum_words.h"

/* The sum of a long run of bytes that copies of a packet share. Code that changes the run must forget the sum. */
struct csum_memo {
	const uint8_t *run;
	uint32_t run_len; /* 0: none */
	uint32_t sum;
};

#define CSUM_MEMO_MIN 512

/* RFC 1071 over pieces that lie apart; an odd last byte is the high half of a word. Pieces that lie side by side are
 * summed together. */
struct csum {
	const uint8_t *run;
	uint32_t run_len;
	bool odd; /* an odd number of bytes came before the run */
	uint64_t sum; /* sum of the bytes before the run: congruent modulo 2^16 - 1, and 0 only if all bytes are */
	struct csum_memo *memo;
	const struct csum_memo *known; /* the last bytes of the frame (pl_know_sum) */
	const uint8_t *own; /* own_len bytes that may change while the memo lasts */
	uint32_t own_len;
};

/* Returns csum_words of the run if that follows from the sum of the known bytes, which end with it; otherwise 0. */
static inline uint64_t csum_of_known(const struct csum *c)
{
	const struct csum_memo *known = c->known;
	uintptr_t offset = (uintptr_t)c->run - (uintptr_t)known->run;
	uint64_t sum;

	if (offset >= known->run_len || offset > c->run_len || offset & 1 || c->run_len != known->run_len - offset)
		return 0;
	sum = known->sum + UINT16_MAX - csum_words(known->run, (uint32_t)offset);
	sum = (sum & UINT16_MAX) + (sum >> 16);
	return sum == UINT16_MAX ? 0 : sum; /* modulo 2^16 - 1 that is 0, which all bytes need not be */
}

/* Returns csum_words of the run. The sum is remembered if the run is long and nothing else changes it. */
static inline uint64_t csum_run(struct csum *c)
{
	struct csum_memo *memo = c->memo;
	uint64_t sum;

	if (c->run_len < CSUM_MEMO_MIN || (uintptr_t)c->run - (uintptr_t)c->own < c->own_len)
		return csum_words(c->run, c->run_len);
	if (c->run == memo->run && c->run_len == memo->run_len)
		return memo->sum;
	sum = csum_of_known(c);
	if (!sum)
		sum = csum_words(c->run, c->run_len);
	*memo = (struct csum_memo){c->run, c->run_len, (uint32_t)sum};
	return sum;
}

static inline void csum_append(struct csum *c, uint64_t sum, uint32_t len)
{
	c->sum += c->odd ? sum : __builtin_bswap16((uint16_t)sum);
	c->odd ^= len & 1;
}

static inline void csum_flush(struct csum *c)
{
	if (c->run_len)
		csum_append(c, csum_run(c), c->run_len);
	c->run_len = 0;
}

/* Adds the next len bytes, whose memory is reused soon. */
static inline void csum_gathered(struct csum *c, const uint8_t *p, uint32_t len)
{
	csum_flush(c);
	csum_append(c, csum_words(p, len), len);
}

/* Adds the next len bytes. */
static inline void csum_add(struct csum *c, const uint8_t *p, uint32_t len)
{
	if (p == c->run + c->run_len) {
		c->run_len += len;
		return;
	}
	csum_flush(c);
	c->run = p;
	c->run_len = len;
}

/* Adds the next len bytes, at most 8, given as a number: modulo 2^16 - 1 only the parity of its last byte's offset
 * counts. */
static inline void csum_value(struct csum *c, uint64_t value, unsigned int len)
{
	csum_flush(c);
	c->odd ^= len & 1;
	c->sum += ((value & UINT32_MAX) + (value >> 32)) << (c->odd ? 8 : 0);
}

static inline uint64_t csum_end(struct csum *c)
{
	csum_flush(c);
	while (c->sum >> 16)
		c->sum = (c->sum & 0xffff) + (c->sum >> 16);
	return (uint16_t)~c->sum;
}

static inline uint64_t hash_csum16(const uint8_t *p, uint32_t len)
{
	return __builtin_bswap16((uint16_t)~csum_words(p, len));
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

/* The custom CRCs, with the parameters that they have by default. */
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
