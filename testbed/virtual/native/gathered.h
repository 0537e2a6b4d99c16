/* What the workers of a job receive in one round, if none of them holds it whole. Workers mostly receive the same bits.
 * Therefore each different result of a chunk is kept once, as a version, and of each worker only which versions it has
 * received. The structures up to `struct share` are mirrored in testbed/virtual/gathered.py.
 */
#ifndef AGGLAB_GATHERED_H
#define AGGLAB_GATHERED_H

#include <stdint.h>

#define NO_VERSION 0      /* nothing has come */
#define UNCLEAR UINT16_MAX /* different results have come, or one that could not be kept */

struct gathered_settings {
	uint64_t elements;       /* of a tensor */
	uint64_t chunk_elements; /* of a chunk; the last one may be shorter */
	uint32_t value_bytes;    /* of a result */
	uint32_t has_sums;       /* integer sums come with the results */
};

struct gathered;

struct share {
	struct gathered *gathered;
	uint16_t *versions; /* for each chunk the version that the worker received: 1 and up, NO_VERSION or UNCLEAR */
	uint64_t misplaced; /* results that were not those of one whole chunk */
};

/* Returns NULL without memory. */
struct gathered *gathered_new(const struct gathered_settings *settings);
void gathered_free(struct gathered *gathered);

/* Takes results of a worker. A take_function of pieces.h; the first argument is a struct share. */
void share_take(void *share, uint64_t first, uint64_t count, const void *results, const int32_t *sums);

/* Copies `count` of the values that a worker received, from number `first` on. What it did not receive is left out, and
 * not numbered either. results, sums: NULL if they are not wanted. Returns the number of values, which is smaller than
 * `count` if there are no more. */
uint64_t share_copy(const struct share *share, uint64_t first, uint64_t count, void *results, int32_t *sums);

#endif
