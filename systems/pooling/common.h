/* What worker.c and server.c share. */
#ifndef AGGLAB_POOLING_COMMON_H
#define AGGLAB_POOLING_COMMON_H

#include <endian.h>
#include <string.h>

#include "pooling.h"

static inline uint8_t *pooling_row(const struct pooling_common *c, uint32_t row)
{
	return c->frames + (uint64_t)row * c->row_bytes;
}

static inline struct pooling_header *pooling_header_at(const struct pooling_common *c, uint32_t row)
{
	return (struct pooling_header *)pooling_row(c, row);
}

static inline uint32_t *pooling_values(const struct pooling_common *c, uint32_t row)
{
	return (uint32_t *)(pooling_row(c, row) + POOLING_HEADER_BYTES);
}

static inline uint32_t pooling_data_bytes(const struct pooling_common *c)
{
	return POOLING_HEADER_BYTES + 4 * c->lanes;
}

static inline void pooling_count_received(struct pooling_common *c, uint32_t length)
{
	c->received++;
	c->bytes_received += POOLING_LOWER_HEADER_BYTES + length;
}

static inline void pooling_count_sent(struct pooling_common *c, uint32_t row)
{
	c->sent++;
	c->bytes_sent += POOLING_LOWER_HEADER_BYTES + c->lengths[row];
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
		c->malformed++;
		return 0;
	}
	if (be32toh(header->session) != c->session) {
		c->late++;
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
