#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "frame.h"

#define HUGE_PAGE_BYTES ((size_t)2 << 20)
#define SLAB_BYTES (2 * HUGE_PAGE_BYTES)
#define ALIGNMENT 64u
#define CLASSES_A_DOUBLING 4u

/* Memory for many frames, in huge pages: frames are used in no order, and small pages would cost a miss each time. */
struct slab {
	struct slab *next;
	_Alignas(ALIGNMENT) uint8_t bytes[];
};

/* Sizes grow by 64 bytes up to 256, then by a quarter of a power of two. */
static uint32_t class_of(uint32_t bytes)
{
	uint32_t most = bytes ? bytes - 1 : 0, doublings;

	if (most < 256)
		return most / 64;
	doublings = 24 - (uint32_t)__builtin_clz(most);
	return doublings * CLASSES_A_DOUBLING + (most >> (5 + doublings)) - CLASSES_A_DOUBLING;
}

static size_t class_bytes(uint32_t class)
{
	uint32_t doublings = class / CLASSES_A_DOUBLING, step = class % CLASSES_A_DOUBLING;

	return doublings ? (size_t)(CLASSES_A_DOUBLING + 1 + step) << (5 + doublings) : (step + 1) * (size_t)64;
}

#ifdef __SANITIZE_ADDRESS__
/* A slab holds one frame, so that overruns are found. */
static struct slab *slab_memory(size_t *bytes)
{
	return aligned_alloc(ALIGNMENT, *bytes);
}
#else
static struct slab *slab_memory(size_t *bytes)
{
	struct slab *slab;

	*bytes = SLAB_BYTES;
	slab = aligned_alloc(HUGE_PAGE_BYTES, *bytes);
	if (slab)
		madvise(slab, *bytes, MADV_HUGEPAGE);
	return slab;
}
#endif

/* Makes room for at least so many bytes in a new slab. Returns 0 without memory. */
static int add_slab(struct pool *pool, size_t bytes)
{
	struct slab *slab;

	bytes += sizeof(*slab);
	slab = slab_memory(&bytes);
	if (!slab)
		return 0;
	slab->next = pool->slabs;
	pool->slabs = slab;
	pool->unused = slab->bytes;
	pool->unused_bytes = bytes - sizeof(*slab);
	return 1;
}

static struct frame *make(struct pool *pool, uint32_t class)
{
	size_t bytes = (sizeof(struct frame) + class_bytes(class) + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
	struct frame *frame;

	if (pool->unused_bytes < bytes && !add_slab(pool, bytes))
		return NULL;
	frame = (struct frame *)pool->unused;
	pool->unused += bytes;
	pool->unused_bytes -= bytes;
	frame->class = class;
	return frame;
}

struct frame *frame_new(struct pool *pool, uint32_t bytes)
{
	uint32_t class;
	struct frame *frame;

	if (bytes > class_bytes(FRAME_CLASSES - 1))
		return NULL;
	class = class_of(bytes);
	frame = pool->free[class];
	if (frame)
		pool->free[class] = frame->next_free;
	else
		frame = make(pool, class);
	if (frame)
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
	while (pool->slabs) {
		struct slab *next = pool->slabs->next;

		free(pool->slabs);
		pool->slabs = next;
	}
}
