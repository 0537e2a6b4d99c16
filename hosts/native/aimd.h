/* The window of hosts/aimd.py, for endpoints whose step per packet is in C. A test compares the two. */
#ifndef AGGLAB_AIMD_H
#define AGGLAB_AIMD_H

#include "structures.h"

static inline void aimd_lost(struct aimd *a)
{
	a->marked = 1;
}

static inline void aimd_answered(struct aimd *a, int marked)
{
	uint32_t in_flight = a->window;
	int shrinks;

	a->marked |= !!marked;
	if (--a->left)
		return;
	shrinks = a->marked && !a->knows;
	if (shrinks) {
		a->window = a->window / 2 > a->least ? a->window / 2 : a->least;
		a->halved++;
	} else if (!a->knows) {
		a->window += a->window < a->most;
	}
	a->left = shrinks ? in_flight : a->window;
	a->knows = (uint32_t)shrinks;
	a->marked = 0;
}

#endif
