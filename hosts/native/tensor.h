/* Any part of a worker's input, without the values before it: the values of hosts/tensors.py, which says what they are.
 * The structure is mirrored in hosts/tensor_parts.py. */
#ifndef AGGLAB_TENSOR_H
#define AGGLAB_TENSOR_H

#include <stdint.h>

#define TENSOR_BLOCK 4096 /* values in a block, tensors.BLOCK */

struct word128 {
	uint64_t low, high;
};

struct tensor {
	struct word128 state; /* of the generator PCG64, before its first output */
	struct word128 increment;
	const uint32_t *blocks; /* of floats: the upper exponent bits of each block, 0 if its values are zero; or NULL */
};

/* Writes `count` values from position `first` on. A give_function of pieces.h; the first argument is a struct tensor. */
void tensor_part(const void *tensor, uint64_t first, uint64_t count, void *values);

#endif
