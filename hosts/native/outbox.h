/* Columns of an outbox: 32-bit numbers, each a stride apart. */
#ifndef AGGLAB_OUTBOX_H
#define AGGLAB_OUTBOX_H

#include <string.h>

#include "structures.h"

static inline uint32_t outbox_column(const uint8_t *first, uint64_t stride, uint32_t row)
{
	uint32_t value;

	memcpy(&value, first + row * stride, sizeof(value));
	return value;
}

static inline uint32_t outbox_length(const struct outbox *outbox, uint32_t row)
{
	return outbox_column(outbox->lengths, outbox->length_stride, row);
}

static inline void outbox_set_length(struct outbox *outbox, uint32_t row, uint32_t length)
{
	memcpy(outbox->lengths + row * outbox->length_stride, &length, sizeof(length));
}

static inline uint32_t outbox_peer(const struct outbox *outbox, uint32_t row)
{
	return outbox_column(outbox->peers, outbox->peer_stride, row);
}

static inline uint8_t *outbox_frame(const struct outbox *outbox, uint32_t row)
{
	return outbox->frames + row * outbox->frame_stride;
}

#endif
