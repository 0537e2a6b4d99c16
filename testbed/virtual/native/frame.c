#include <stdlib.h>
#include <string.h>

#include "frame.h"

#define STEP_BYTES 64u
#define STEPS 4u /* classes to a doubling */

/* Sizes grow in steps of 64 bytes up to 256, then in steps of a quarter of a power of two. */
static uint32_t class_of(uint32_t bytes)
{
	uint32_t last = bytes ? bytes - 1 : 0, doublings;

	if (last < STEPS * STEP_BYTES)
		return last / STEP_BYTES;
	doublings = 24 - (uint32_t)__builtin_clz(last);
	return doublings * STEPS + (last >> (5 + doublings)) - STEPS;
}

static uint32_t class_bytes(uint32_t class)
{
	uint32_t doublings = class / STEPS, step = class % STEPS;

	return doublings ? (STEPS + 1 + step) << (5 + doublings) : (step + 1) * STEP_BYTES;
}

static struct frame *make(struct pool *pool, uint32_t class)
{
	struct frame *frame = malloc(sizeof(*frame) + class_bytes(class));

	if (!frame)
		return NULL;
	frame->class = class;
	frame->next = pool->all;
	pool->all = frame;
	return frame;
}

static struct frame *take(struct pool *pool, uint32_t class)
{
	struct frame *frame = pool->free[class];

	if (frame)
		pool->free[class] = frame->next_free;
	return frame;
}

struct frame *frame_new(struct pool *pool, uint32_t bytes)
{
	uint32_t class;
	struct frame *frame;

	if (bytes > class_bytes(FRAME_CLASSES - 1))
		return NULL;
	class = class_of(bytes);
	frame = take(pool, class);
	if (!frame)
		frame = make(pool, class);
	if (!frame)
		return NULL;
	frame->bytes = bytes;
	return frame;
}

struct frame *frame_copy(struct pool *pool, const uint8_t *data, uint32_t bytes)
{
	struct frame *frame = frame_new(pool, bytes);

	if (frame)
		memcpy(frame->data, data, bytes);
	return frame;
}

void frame_free(struct pool *pool, struct frame *frame)
{
	frame->next_free = pool->free[frame->class];
	pool->free[frame->class] = frame;
}

void pool_free(struct pool *pool)
{
	while (pool->all) {
		struct frame *next = pool->all->next;

		free(pool->all);
		pool->all = next;
	}
}
