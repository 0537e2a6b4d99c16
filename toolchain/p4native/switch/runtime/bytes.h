/* Integers in packets: big endian, any width, any bit offset. */
#ifndef P4NATIVE_BYTES_H
#define P4NATIVE_BYTES_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

static inline uint64_t be16(const uint8_t *p)
{
	uint16_t v;

	memcpy(&v, p, sizeof(v));
	return __builtin_bswap16(v);
}

static inline uint64_t be32(const uint8_t *p)
{
	uint32_t v;

	memcpy(&v, p, sizeof(v));
	return __builtin_bswap32(v);
}

static inline uint64_t be64(const uint8_t *p)
{
	uint64_t v;

	memcpy(&v, p, sizeof(v));
	return __builtin_bswap64(v);
}

/* n is 1 to 8; constant wherever speed matters */
static inline uint64_t load_be(const uint8_t *p, unsigned int n)
{
	switch (n) {
	case 1:
		return p[0];
	case 2:
		return be16(p);
	case 3:
		return be16(p) << 8 | p[2];
	case 4:
		return be32(p);
	case 5:
		return be32(p) << 8 | p[4];
	case 6:
		return be32(p) << 16 | be16(p + 4);
	case 7:
		return be32(p) << 24 | be16(p + 4) << 8 | p[6];
	default:
		return be64(p);
	}
}

static inline void store_be(uint8_t *p, uint64_t v, unsigned int n)
{
	uint64_t swapped = __builtin_bswap64(v << (64 - 8 * n));

	memcpy(p, &swapped, n);
}

static inline uint64_t low_bits(uint64_t v, unsigned int bits)
{
	return bits >= 64 ? v : v & ((UINT64_C(1) << bits) - 1);
}

static inline uint64_t sign_extend(uint64_t v, unsigned int bits)
{
	return bits >= 64 ? v : (uint64_t)((int64_t)(v << (64 - bits)) >> (64 - bits));
}

/* Shifts by amounts that C leaves undefined. */
static inline uint64_t shift_left(uint64_t v, uint32_t amount)
{
	return amount < 64 ? v << amount : 0;
}

static inline uint64_t shift_right(uint64_t v, uint32_t amount)
{
	return amount < 64 ? v >> amount : 0;
}

static inline uint64_t shift_right_signed(uint64_t v, uint32_t amount)
{
	return (uint64_t)((int64_t)v >> (amount < 64 ? amount : 63));
}

/* Division by zero gives 0 (BMv2 aborts); the sign follows C. */
static inline uint64_t divide(uint64_t a, uint64_t b)
{
	return b ? a / b : 0;
}

static inline uint64_t modulo(uint64_t a, uint64_t b)
{
	return b ? a % b : 0;
}

static inline uint64_t divide_signed(uint64_t a, uint64_t b)
{
	if (b == UINT64_MAX)
		return 0 - a;
	return b ? (uint64_t)((int64_t)a / (int64_t)b) : 0;
}

static inline uint64_t modulo_signed(uint64_t a, uint64_t b)
{
	if (b == UINT64_MAX)
		return 0;
	return b ? (uint64_t)((int64_t)a % (int64_t)b) : 0;
}

/* Loads `bits` bits (1 to 64) that start `bit` bits after p. Reads only the bytes that hold them. */
static inline uint64_t load_bits(const uint8_t *p, uint32_t bit, uint32_t bits)
{
	unsigned int skip = bit % 8, bytes = (skip + bits + 7) / 8;
	unsigned int spare = 8 * bytes - skip - bits;

	p += bit / 8;
	if (bytes <= 8)
		return low_bits(load_be(p, bytes) >> spare, bits);
	return low_bits(be64(p) << (8 - spare) | p[8] >> spare, bits);
}

/* The reverse of load_bits. Other bits keep their values; v has no bits above the lowest `bits`. */
static inline void store_bits(uint8_t *p, uint32_t bit, uint32_t bits, uint64_t v)
{
	p += bit / 8;
	bit %= 8;
	while (bits) {
		unsigned int room = 8 - bit, take = bits < room ? bits : room;
		unsigned int shift = room - take;
		uint8_t mask = (uint8_t)(((1u << take) - 1) << shift);

		bits -= take;
		*p = (uint8_t)((*p & ~mask) | ((v >> bits << shift) & mask));
		p++;
		bit = 0;
	}
}

/* Loads a wide number of `bits` bits. It is right aligned in (bits + 7) / 8 bytes; the spare top bits are zero. */
static inline void load_wide(uint8_t *out, const uint8_t *p, uint32_t bit, uint32_t bits)
{
	uint32_t first = bits % 8 ? bits % 8 : 8;

	*out++ = (uint8_t)load_bits(p, bit, first);
	for (uint32_t done = first; done < bits; done += 8)
		*out++ = (uint8_t)load_bits(p, bit + done, 8);
}

static inline void store_wide(uint8_t *p, uint32_t bit, uint32_t bits, const uint8_t *value)
{
	uint32_t first = bits % 8 ? bits % 8 : 8;

	store_bits(p, bit, first, *value++);
	for (uint32_t done = first; done < bits; done += 8)
		store_bits(p, bit + done, 8, *value++);
}

typedef uint8_t bytes64 __attribute__((vector_size(64), aligned(1), may_alias));

/* Copies a wide number. in and out may be the same, but must not overlap in part. Compilers would call memcpy for what
 * these few moves do faster. */
static inline void copy_wide(uint8_t *out, const uint8_t *in, uint32_t bytes)
{
	uint32_t at = 0;

	if (bytes > 16 * sizeof(bytes64)) {
		memcpy(out, in, bytes);
		return;
	}
	_Pragma("GCC unroll 16")
	for (; at + sizeof(bytes64) <= bytes; at += sizeof(bytes64))
		*(bytes64 *)(out + at) = *(const bytes64 *)(in + at);
	memcpy(out + at, in + at, bytes - at);
}

/* Equality of big endian numbers of different lengths. */
static inline bool same_number(const uint8_t *a, uint32_t a_bytes, const uint8_t *b, uint32_t b_bytes)
{
	for (; a_bytes > b_bytes; a_bytes--)
		if (*a++)
			return false;
	for (; b_bytes > a_bytes; b_bytes--)
		if (*b++)
			return false;
	return !memcmp(a, b, a_bytes);
}

/* The 64 bits of a wide number that start shift bits above its lowest. */
static inline uint64_t wide_slice(const uint8_t *value, uint32_t bytes, uint32_t shift)
{
	uint32_t skip = shift / 8, rest = skip < bytes ? bytes - skip : 0;
	unsigned int bit = shift % 8;
	uint64_t v;

	if (!rest)
		return 0;
	if (rest < 8)
		return load_be(value, rest) >> bit;
	v = be64(value + rest - 8) >> bit;
	if (bit && rest > 8)
		v |= (uint64_t)value[rest - 9] << (64 - bit);
	return v;
}

#endif
