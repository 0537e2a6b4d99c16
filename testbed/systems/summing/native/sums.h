/* The right sums of float32 tensors (truth.py), of one block of each worker's tensor. This code has nothing in common
 * with that of workers and switches, which it helps to judge. */
#ifndef AGGLAB_SUMS_H
#define AGGLAB_SUMS_H

#include <stdint.h>

/* The fields are mirrored in __init__.py. All arrays have `count` elements. */
struct sums {
	uint64_t count;
	double limit;        /* the largest magnitude of a worker's integer */
	const double *scale; /* by which the values are multiplied */
	double *total;       /* the sums of the workers' integers */
	double *values;      /* the sums of the workers' values */
	uint32_t *largest;   /* the largest magnitudes of the workers' values, as the bits of a float */
};

/* Adds the values of a worker. */
void sums_add(const struct sums *sums, const float *from);

#endif
