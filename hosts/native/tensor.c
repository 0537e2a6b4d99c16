/* Parts of inputs (see tensor.h). The generator is PCG64 with the output function XSL RR (O'Neill, 2014), as in NumPy.
 * An output has two values, the lower half first. */
#include "tensor.h"

#include <string.h>

#define SIGN_AND_FRACTION 0x83FFFFFFu /* tensors.SIGN_AND_FRACTION */
#define STREAMS 4                     /* outputs that are computed at the same time */

typedef unsigned __int128 uint128;

static const struct word128 MULTIPLIER = {0x4385DF649FCCF645u, 0x2360ED051FC65DA4u};

/* Several steps of the generator at once: state * factor + increment * terms. */
struct steps {
	uint128 factor, terms;
};

static uint128 whole(struct word128 word)
{
	return (uint128)word.high << 64 | word.low;
}

/* Brown, "Random Number Generation with Arbitrary Strides" (1994). */
static struct steps steps_of(uint64_t count)
{
	struct steps all = {1, 0}, power = {whole(MULTIPLIER), 1};

	for (; count; count >>= 1) {
		if (count & 1)
			all = (struct steps){all.factor * power.factor, all.terms * power.factor + power.terms};
		power = (struct steps){power.factor * power.factor, power.terms * power.factor + power.terms};
	}
	return all;
}

static uint128 after(uint128 state, uint128 increment, uint64_t count)
{
	struct steps steps = steps_of(count);

	return state * steps.factor + increment * steps.terms;
}

static uint64_t output(uint128 state)
{
	uint64_t mixed = (uint64_t)(state >> 64) ^ (uint64_t)state;
	unsigned int turn = (unsigned int)(state >> 122);

	return mixed >> turn | mixed << (-turn & 63);
}

static void put_pair(uint32_t *values, uint64_t bits)
{
	values[0] = (uint32_t)bits;
	values[1] = (uint32_t)(bits >> 32);
}

/* Writes `pairs` outputs from number `first` on. */
static void put_outputs(const struct tensor *tensor, uint64_t first, uint64_t pairs, uint32_t *values)
{
	uint128 increment = whole(tensor->increment), states[STREAMS];
	struct steps steps = steps_of(STREAMS);
	uint128 added = increment * steps.terms;
	uint64_t pair = 0;

	states[0] = after(whole(tensor->state), increment, first + 1);
	for (int i = 1; i < STREAMS; i++)
		states[i] = states[i - 1] * whole(MULTIPLIER) + increment;
	for (; pair + STREAMS <= pairs; pair += STREAMS)
		for (int i = 0; i < STREAMS; i++) {
			put_pair(values + 2 * (pair + i), output(states[i]));
			states[i] = states[i] * steps.factor + added;
		}
	for (int i = 0; pair < pairs; i++, pair++)
		put_pair(values + 2 * pair, output(states[i]));
}

static uint32_t value_at(const struct tensor *tensor, uint64_t position)
{
	uint32_t pair[2];

	put_outputs(tensor, position / 2, 1, pair);
	return pair[position % 2];
}

static void put_random(const struct tensor *tensor, uint64_t first, uint64_t count, uint32_t *values)
{
	if (count && first % 2) {
		*values++ = value_at(tensor, first++);
		count--;
	}
	put_outputs(tensor, first / 2, count / 2, values);
	if (count % 2)
		values[count - 1] = value_at(tensor, first + count - 1);
}

/* Writes values of one block of floats. */
static void put_floats(const struct tensor *tensor, uint64_t first, uint64_t count, uint32_t *values)
{
	uint32_t upper = tensor->blocks[first / TENSOR_BLOCK];

	if (!upper) {
		memset(values, 0, count * sizeof(*values));
		return;
	}
	put_random(tensor, first, count, values);
	for (uint64_t i = 0; i < count; i++)
		values[i] = (values[i] & SIGN_AND_FRACTION) | upper;
}

void tensor_part(const void *tensor, uint64_t first, uint64_t count, void *values)
{
	const struct tensor *own = tensor;
	uint32_t *to = values;

	if (!own->blocks) {
		put_random(own, first, count, to);
		return;
	}
	while (count) {
		uint64_t left = TENSOR_BLOCK - first % TENSOR_BLOCK, some = left < count ? left : count;

		put_floats(own, first, some, to);
		first += some;
		to += some;
		count -= some;
	}
}
