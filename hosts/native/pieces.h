/* A round whose values and results a worker does not hold whole: it asks for values when it needs them, and hands over
 * results when they come. Mirrored in hosts/pieces.py. */
#ifndef AGGLAB_PIECES_H
#define AGGLAB_PIECES_H

#include <stdint.h>

struct pieces {
	/* Writes `count` of the worker's values, from number `first` on. */
	void (*give)(const void *input, uint64_t first, uint64_t count, void *values);
	const void *input;
	/* Takes the results of the same places. sums: the integers that the switch returned, or NULL. */
	void (*take)(void *output, uint64_t first, uint64_t count, const void *results, const int32_t *sums);
	void *output;
	/* Room for one chunk of each, which workers may share: nothing stays in it. */
	void *values;
	void *results;
	int32_t *sums; /* NULL: the sums are not wanted */
};

#endif
