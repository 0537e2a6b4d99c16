#include <time.h>

#include "pace.h"

#define BATCH 16384 /* actions: some 10 ms */
#define TRIES 32    /* one of so many batches tries the way that seems slower */

static int64_t real_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

static int choose(const struct pace *pace)
{
	const double *ns = pace->ns_an_action;
	int faster;

	if (!ns[0] || !ns[1])
		return !ns[1];
	faster = ns[1] < ns[0];
	return pace->batches % TRIES ? faster : !faster;
}

int pace_in_windows(struct pace *pace, uint64_t happened)
{
	int64_t now_ns;

	if (pace->is_fixed || happened < pace->end)
		return pace->is_fixed || pace->in_windows;
	now_ns = real_ns();
	if (pace->is_clean && happened > pace->begun)
		pace->ns_an_action[pace->in_windows] = (double)(now_ns - pace->begun_ns) / (double)(happened - pace->begun);
	pace->batches++;
	pace->in_windows = choose(pace);
	pace->is_clean = 1;
	pace->begun = happened;
	pace->begun_ns = now_ns;
	pace->end = happened + BATCH;
	return pace->in_windows;
}

void pace_interrupted(struct pace *pace)
{
	pace->is_clean = 0;
}
