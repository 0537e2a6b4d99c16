/* Decides what each kind of impairment does to frame k of a direction: docs/virtual.md, "Impairments".
 *
 * Every decision is a function of (key, k). Mirrored in testbed/run/impairments/decisions.py, which says what each kind
 * does.
 */
#ifndef AGGLAB_DECISIONS_H
#define AGGLAB_DECISIONS_H

#include <stdint.h>

enum { DROP, GILBERT_ELLIOTT, PERIODIC_DROP, DROP_LIST, DUPLICATE, REORDER, CORRUPT, JITTER };

/* A probability of below / 2^64; always stands for 2^64 / 2^64. */
struct chance {
	uint64_t below;
	uint64_t always;
};

struct decider {
	uint64_t kind;
	uint64_t key;
	struct chance chances[2]; /* GILBERT_ELLIOTT: to leave the good state and the bad one; others: the first */
	struct chance losses[2];  /* GILBERT_ELLIOTT: in the good state and in the bad one */
	uint64_t delay_ns;        /* delay of DUPLICATE and REORDER; for JITTER the largest one */
	uint64_t period, count, offset; /* PERIODIC_DROP */
	const uint64_t *numbers;  /* DROP_LIST: the frames to drop, ascending */
	uint64_t number_count;
	uint64_t bad, reached;    /* GILBERT_ELLIOTT: the state before frame `reached` */
};

/* What all deciders of a direction decide about a frame. Each array has room for one entry of each decider. */
struct decision {
	int64_t late_ns;
	int64_t *copies_ns; /* how long after the frame each copy comes */
	uint64_t *flipped;  /* bit numbers; 0 is the highest of the first byte */
	uint32_t copies, flips;
	uint32_t dropped;
};

/* Returns output `number` of splitmix64 with the state starting at key. */
uint64_t draw(uint64_t key, uint64_t number);

/* Adds what one impairment does to frame k, whose length is `bytes`. Calls must have ascending k. */
void decide(struct decider *decider, uint64_t k, uint64_t bytes, struct decision *decision);

void flip(uint8_t *frame, uint64_t bit);

uint32_t decider_layout(void); /* sizeof(struct decider) << 16 | sizeof(struct decision) */

#endif
