/* Frames under way: buffers that are used again. */
#ifndef AGGLAB_FRAME_H
#define AGGLAB_FRAME_H

#include <stdint.h>

#define FRAME_CLASSES 36 /* 64 bytes to 64 KiB */

struct frame {
	struct frame *next_free;
	struct frame *next; /* next frame in the list of all that the pool has made */
	void *holder;       /* whoever keeps it for later: a direction or a switch */
	uint64_t number;    /* a number for the holder's use */
	uint32_t bytes;
	uint32_t class;
	uint8_t data[];
};

struct pool {
	struct frame *all;
	struct frame *free[FRAME_CLASSES];
};

/* Returns room for a frame of `bytes` bytes; NULL without memory, or if it is too long. */
struct frame *frame_new(struct pool *pool, uint32_t bytes);
struct frame *frame_copy(struct pool *pool, const uint8_t *data, uint32_t bytes);
void frame_free(struct pool *pool, struct frame *frame);
void pool_free(struct pool *pool);

#endif
