/* Meters: two token buckets on the pipeline's clock; colours 0 (green), 1 (yellow), 2 (red). */
#ifndef P4NATIVE_METER_H
#define P4NATIVE_METER_H

#include <stdbool.h>
#include <stdint.h>

#include "pipeline.h"

#define METER_RATES 2

struct bucket {
	double per_us;
	uint64_t burst, tokens;
	uint64_t given; /* tokens that the rate has given since the clock's start */
};

struct meter {
	bool configured;
	struct bucket bucket[METER_RATES]; /* committed, peak */
};

static inline void bucket_fill(struct bucket *b, uint64_t now_us)
{
	double exact = (double)now_us * b->per_us;
	uint64_t given = exact < 0x1p63 ? (uint64_t)exact : UINT64_C(1) << 63;

	if (given <= b->given)
		return;
	b->tokens = given - b->given < b->burst - b->tokens ? b->tokens + (given - b->given) : b->burst;
	b->given = given;
}

/* Returns the packet's colour. As in BMv2, a red packet takes no tokens, and a yellow one only those of the peak rate. */
static inline uint32_t meter_execute(struct meter *m, uint64_t units, uint64_t now_us)
{
	if (!m->configured)
		return 0;
	for (uint32_t i = METER_RATES; i--;) {
		struct bucket *b = &m->bucket[i];

		bucket_fill(b, now_us);
		if (b->tokens < units)
			return i + 1;
		b->tokens -= units;
	}
	return 0;
}

/* Sets the rates; NULL: unconfigured. The buckets begin full. */
static inline int meter_set(struct meter *m, const struct pl_rate *rates)
{
	if (!rates) {
		*m = (struct meter){0};
		return 0;
	}
	for (uint32_t i = 0; i < METER_RATES; i++) {
		/* This form of the comparison refuses NaN, too. */
		if (!(rates[i].per_us >= 0 && rates[i].per_us <= 1e6))
			return -EINVAL;
	}
	if (rates[0].per_us > rates[1].per_us)
		return -EINVAL;
	m->configured = true;
	for (uint32_t i = 0; i < METER_RATES; i++)
		m->bucket[i] = (struct bucket){rates[i].per_us, rates[i].burst, rates[i].burst, 0};
	return 0;
}

static inline void meter_read(const struct meter *m, struct pl_rate *rates, uint32_t *configured)
{
	*configured = m->configured;
	for (uint32_t i = 0; i < METER_RATES; i++)
		rates[i] = (struct pl_rate){m->bucket[i].per_us, m->bucket[i].burst};
}

#endif
