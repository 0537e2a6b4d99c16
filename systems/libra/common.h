/* What worker.c and server.c share; state.py declares the states. README.md. */
#ifndef AGGLAB_LIBRA_COMMON_H
#define AGGLAB_LIBRA_COMMON_H

#include <endian.h>
#include <string.h>

#include "endpoint.h"
#include "libra_wire.h"
#include "quantise.h"
#include "state.h"

#define KEY_BYTES 8
#define VALUE_BYTES 4
#define NO_KEY UINT64_MAX

/* Returns whether the header belongs to this job and session. If not, counts the packet. */
static inline int libra_ours(struct libra_common *c, const struct libra_header *header, uint32_t length,
			     uint8_t first_kind, uint8_t last_kind)
{
	if (length < LIBRA_HEADER_BYTES || header->version != LIBRA_VERSION || header->kind < first_kind ||
	    header->kind > last_kind || be16toh(header->job) != c->job) {
		c->endpoint.malformed++;
		return 0;
	}
	if (be32toh(header->session) != c->session) {
		c->endpoint.late++;
		return 0;
	}
	return 1;
}

/* Rounds are counted modulo 2^32. */
static inline int32_t libra_ahead(const struct libra_header *header, uint32_t round)
{
	return (int32_t)(be32toh(header->round) - round);
}

static inline uint32_t libra_bytes(uint32_t pairs, int with_keys, int with_values)
{
	return LIBRA_HEADER_BYTES + pairs * ((with_keys ? KEY_BYTES : 0) + (with_values ? VALUE_BYTES : 0));
}

/* Keys and values on the wire need not be aligned. */
static inline uint64_t libra_key(const uint8_t *datagram, uint32_t at)
{
	uint64_t key;

	memcpy(&key, datagram + LIBRA_HEADER_BYTES + at * KEY_BYTES, sizeof(key));
	return be64toh(key);
}

static inline void libra_put_keys(uint8_t *row, const uint64_t *keys, uint32_t pairs)
{
	for (uint32_t i = 0; i < pairs; i++) {
		uint64_t key = htobe64(keys[i]);

		memcpy(row + LIBRA_HEADER_BYTES + i * KEY_BYTES, &key, sizeof(key));
	}
}

static inline uint32_t libra_value(const uint8_t *values, uint32_t at)
{
	uint32_t value;

	memcpy(&value, values + at * VALUE_BYTES, sizeof(value));
	return wire_order(value);
}

static inline void libra_put_value(uint8_t *values, uint32_t at, uint32_t value)
{
	value = wire_order(value);
	memcpy(values + at * VALUE_BYTES, &value, sizeof(value));
}

#endif
