/* Any part of a worker's input, without the values before it: the values of hosts/tensors.py, which says what they are.
 */
#ifndef AGGLAB_TENSOR_H
#define AGGLAB_TENSOR_H

#include "structures.h"

#define TENSOR_BLOCK 4096 /* values in a block, tensors.BLOCK */

/* Writes `count` values from position `first` on. The first argument is a struct tensor. */
void tensor_part(const void *tensor, uint64_t first, uint64_t count, void *values);

#endif
