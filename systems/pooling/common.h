/* What worker.c and server.c share; state.py declares the states. README.md. */
#ifndef AGGLAB_POOLING_COMMON_H
#define AGGLAB_POOLING_COMMON_H

#include <endian.h>
#include <string.h>

#include "endpoint.h"
#include "pooling_wire.h"
#include "state.h"

static inline struct pooling_header *pooling_header_at(const struct pooling_common *c, uint32_t row)
{
	return (struct pooling_header *)endpoint_row(&c->endpoint, row);
}

static inline uint32_t *pooling_values(const struct pooling_common *c, uint32_t row)
{
	return (uint32_t *)(endpoint_row(&c->endpoint, row) + POOLING_HEADER_BYTES);
}

static inline uint32_t pooling_data_bytes(const struct pooling_common *c)
{
	return POOLING_HEADER_BYTES + 4 * c->lanes;
}

/* Returns whether the header belongs to this job and session, and the length fits its kind. If not, counts the packet. */
static inline int pooling_ours(struct pooling_common *c, const struct pooling_header *header, uint32_t length,
			       uint8_t result)
{
	uint8_t kind = header->kind ^ result;
	uint32_t expected = kind == POOLING_MISMATCH ? POOLING_HEADER_BYTES : pooling_data_bytes(c);

	if (length < POOLING_HEADER_BYTES || header->version != POOLING_VERSION || kind < POOLING_INT32 ||
	    kind > (result ? POOLING_MISMATCH : POOLING_FLOAT32) || length != expected || header->exponent ||
	    header->zero || be16toh(header->job) != c->job) {
		c->endpoint.malformed++;
		return 0;
	}
	if (be32toh(header->session) != c->session) {
		c->endpoint.late++;
		return 0;
	}
	return 1;
}

static inline struct pooling_header pooling_header_of(const struct pooling_common *c, uint8_t kind, uint32_t tag,
						      uint32_t digest)
{
	return (struct pooling_header){
		.version = POOLING_VERSION,
		.kind = kind,
		.job = htobe16((uint16_t)c->job),
		.tag = htobe32(tag),
		.session = htobe32(c->session),
		.digest = htobe32(digest),
	};
}

#endif
