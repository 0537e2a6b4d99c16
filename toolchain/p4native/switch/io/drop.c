/* Seeded loss with the decisions that the testbed takes on real links, for machines that do not allow its eBPF (see
 * drop.h). */
#include "drop.h"

#include <stdlib.h>
#include <string.h>

struct drop {
	uint64_t key, threshold;
	bool always;
	/* Written by the data plane's thread, each with one store; `dropped` is written after the frame's number. */
	uint64_t seen, dropped, dropped_bytes;
	uint64_t numbers[LOOP_DROP_NUMBERS];
};

/* Returns output k of Vigna's splitmix64 whose state starts at key. */
static uint64_t draw(uint64_t key, uint64_t k)
{
	uint64_t z = key + (k + 1) * 0x9E3779B97F4A7C15u;

	z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
	z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
	return z ^ (z >> 31);
}

struct drop *drop_new(uint64_t key, uint64_t threshold, bool always)
{
	struct drop *drop = calloc(1, sizeof(*drop));

	if (drop) {
		drop->key = key;
		drop->threshold = threshold;
		drop->always = always;
	}
	return drop;
}

void drop_free(struct drop *drop)
{
	free(drop);
}

bool drop_frame(struct drop *drop, uint32_t len)
{
	uint64_t k = drop->seen;

	__atomic_store_n(&drop->seen, k + 1, __ATOMIC_RELAXED);
	if (!drop->always && draw(drop->key, k) >= drop->threshold)
		return false;
	if (drop->dropped < LOOP_DROP_NUMBERS)
		drop->numbers[drop->dropped] = k;
	__atomic_store_n(&drop->dropped_bytes, drop->dropped_bytes + len, __ATOMIC_RELAXED);
	__atomic_store_n(&drop->dropped, drop->dropped + 1, __ATOMIC_RELEASE);
	return true;
}

void drop_read(const struct drop *drop, struct loop_drop_stats *out, uint64_t *numbers, uint32_t room)
{
	uint64_t kept;

	out->dropped = __atomic_load_n(&drop->dropped, __ATOMIC_ACQUIRE);
	out->dropped_bytes = __atomic_load_n(&drop->dropped_bytes, __ATOMIC_RELAXED);
	out->seen = __atomic_load_n(&drop->seen, __ATOMIC_RELAXED);
	kept = out->dropped < LOOP_DROP_NUMBERS ? out->dropped : LOOP_DROP_NUMBERS;
	memcpy(numbers, drop->numbers, (kept < room ? kept : room) * sizeof(*numbers));
}
