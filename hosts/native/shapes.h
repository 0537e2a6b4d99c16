/* The shape of a round says what a worker reduces (docs/protocol.md). An OPENING carries the smallest and the largest
 * of the shapes that the switch knows. */
#ifndef AGGLAB_SHAPES_H
#define AGGLAB_SHAPES_H

#include <string.h>

#include "structures.h"
#include "wire.h"

/* Writes the worker's own shape as both the smallest and the largest. Returns the length. */
static inline uint32_t shapes_put(const struct shapes *s, uint8_t *body)
{
	memcpy(body, s->own, WIRE_SHAPE_BYTES);
	memcpy(body + WIRE_SHAPE_BYTES, s->own, WIRE_SHAPE_BYTES);
	return 2 * WIRE_SHAPE_BYTES;
}

/* Whether all workers reduce what this one does. */
static inline int shapes_agree(const struct shapes *s, const uint8_t *body)
{
	return !memcmp(body, s->own, WIRE_SHAPE_BYTES) &&
	       !memcmp(body + WIRE_SHAPE_BYTES, s->own, WIRE_SHAPE_BYTES);
}

/* Returns whether all workers reduce what this one does, and keeps the shapes. If not, the round has no result. */
static inline int shapes_take(struct shapes *s, const uint8_t *body)
{
	if (shapes_agree(s, body))
		return 1;
	memcpy(s->smallest, body, WIRE_SHAPE_BYTES);
	memcpy(s->largest, body + WIRE_SHAPE_BYTES, WIRE_SHAPE_BYTES);
	return 0;
}

#endif
