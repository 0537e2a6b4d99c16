/* Brings memory into the cache before it is read. */
#ifndef AGGLAB_PREFETCH_H
#define AGGLAB_PREFETCH_H

#include <stdint.h>

#define FETCHED_BYTES 64 /* a line of the cache */

/* Brings all of it into the cache, and does not wait for it. The memory need not exist. */
static inline void prefetch(const void *memory, uint64_t bytes)
{
	for (uint64_t at = 0; at < bytes; at += FETCHED_BYTES)
		__builtin_prefetch((const void *)((uintptr_t)memory + at));
}

#endif
