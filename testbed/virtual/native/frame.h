/* Frames under way: buffers that are used again. */
#ifndef AGGLAB_FRAME_H
#define AGGLAB_FRAME_H

#include <stddef.h>
#include <stdint.h>

#define FRAME_CLASSES 36 /* 64 bytes to 64 KiB */

struct frame {
	struct frame *next_free;
	void *holder;       /* whoever keeps it for later: a direction or a switch */
	uint64_t number;    /* a number for the holder's use */
	uint32_t bytes;
	uint32_t class;
	uint8_t data[];
};

struct slab;

struct pool {
	struct slab *slabs; /* all memory */
	uint8_t *unused;    /* the rest of the newest slab */
	size_t unused_bytes;
	struct frame *free[FRAME_CLASSES];
};

/* Returns room for a frame of `bytes` bytes; NULL without memory, or if it is too long. */
struct frame *frame_new(struct pool *pool, uint32_t bytes);
struct frame *frame_copy(struct pool *pool, const uint8_t *data, uint32_t bytes);
void frame_free(struct pool *pool, struct frame *frame);
void pool_free(struct pool *pool);

#endif
