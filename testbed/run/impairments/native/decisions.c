/* Decisions of impairments: see decisions.h. */
#include "decisions.h"

#define GOLDEN UINT64_C(0x9E3779B97F4A7C15)
#define MULTIPLIER_1 UINT64_C(0xBF58476D1CE4E5B9)
#define MULTIPLIER_2 UINT64_C(0x94D049BB133111EB)

uint64_t draw(uint64_t key, uint64_t number)
{
	uint64_t z = key + (number + 1) * GOLDEN;

	z = (z ^ (z >> 30)) * MULTIPLIER_1;
	z = (z ^ (z >> 27)) * MULTIPLIER_2;
	return z ^ (z >> 31);
}

static int happens(const struct decider *d, const struct chance *chance, uint64_t number)
{
	return chance->always || draw(d->key, number) < chance->below;
}

/* Draw 2k decides the transition before frame k, draw 2k + 1 the loss in the state then. */
static int lost_in_burst(struct decider *d, uint64_t k)
{
	for (; d->reached <= k; d->reached++)
		d->bad ^= (uint64_t)happens(d, &d->chances[d->bad], 2 * d->reached);
	return happens(d, &d->losses[d->bad], 2 * k + 1);
}

static int in_period(const struct decider *d, uint64_t k)
{
	return k >= d->offset && (k - d->offset) % d->period < d->count;
}

static int is_listed(const struct decider *d, uint64_t k)
{
	uint64_t low = 0, high = d->number_count;

	while (low < high) {
		uint64_t middle = low + (high - low) / 2;

		if (d->numbers[middle] < k)
			low = middle + 1;
		else
			high = middle;
	}
	return low < d->number_count && d->numbers[low] == k;
}

/* Returns 0 to delay_ns; every nanosecond is equally likely. */
static int64_t jitter_ns(const struct decider *d, uint64_t k)
{
	return (int64_t)((unsigned __int128)draw(d->key, k) * (d->delay_ns + 1) >> 64);
}

void decide(struct decider *d, uint64_t k, uint64_t bytes, struct decision *decision)
{
	switch (d->kind) {
	case DROP:
		decision->dropped |= (uint32_t)happens(d, &d->chances[0], k);
		break;
	case GILBERT_ELLIOTT:
		decision->dropped |= (uint32_t)lost_in_burst(d, k);
		break;
	case PERIODIC_DROP:
		decision->dropped |= (uint32_t)in_period(d, k);
		break;
	case DROP_LIST:
		decision->dropped |= (uint32_t)is_listed(d, k);
		break;
	case DUPLICATE:
		if (happens(d, &d->chances[0], k))
			decision->copies_ns[decision->copies++] = (int64_t)d->delay_ns;
		break;
	case REORDER:
		if (happens(d, &d->chances[0], k))
			decision->late_ns += (int64_t)d->delay_ns;
		break;
	case CORRUPT:
		if (happens(d, &d->chances[0], 2 * k))
			decision->flipped[decision->flips++] = draw(d->key, 2 * k + 1) % (8 * bytes);
		break;
	case JITTER:
		decision->late_ns += jitter_ns(d, k);
		break;
	}
}

void flip(uint8_t *frame, uint64_t bit)
{
	frame[bit >> 3] ^= (uint8_t)(0x80 >> (bit & 7));
}

uint32_t decider_layout(void)
{
	return (uint32_t)(sizeof(struct decider) << 16 | sizeof(struct decision));
}
