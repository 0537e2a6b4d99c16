/* What worker.c and server.c share; state.py declares the states. README.md. */
#ifndef AGGLAB_PS_COMMON_H
#define AGGLAB_PS_COMMON_H

#include <endian.h>
#include <string.h>

#include "endpoint.h"
#include "ps_wire.h"
#include "state.h"

static inline uint32_t *ps_values(const struct ps_common *c, uint32_t row)
{
	return (uint32_t *)(endpoint_row(&c->endpoint, row) + PS_HEADER_BYTES);
}

static inline uint32_t ps_data_bytes(const struct ps_common *c)
{
	return PS_HEADER_BYTES + 4 * c->lanes;
}

/* Returns whether the header belongs to this job and session. If not, counts the packet. */
static inline int ps_ours(struct ps_common *c, const struct ps_header *header, uint32_t length, uint8_t first_kind,
			  uint8_t last_kind)
{
	if (length < PS_HEADER_BYTES || header->version != PS_VERSION || header->kind < first_kind ||
	    header->kind > last_kind || header->zero || be16toh(header->job) != c->job) {
		c->endpoint.malformed++;
		return 0;
	}
	if (be32toh(header->session) != c->session) {
		c->endpoint.late++;
		return 0;
	}
	return 1;
}

/* Rounds are counted modulo 2^16. */
static inline int ps_ahead(const struct ps_common *c, const struct ps_header *header)
{
	return (int16_t)(uint16_t)(be16toh(header->round) - c->round);
}

static inline struct ps_header ps_header_of(const struct ps_common *c, uint8_t kind)
{
	return (struct ps_header){
		.version = PS_VERSION,
		.kind = kind,
		.job = htobe16((uint16_t)c->job),
		.session = htobe32(c->session),
		.digest = htobe32(c->digest),
		.round = htobe16((uint16_t)c->round),
	};
}

#endif
