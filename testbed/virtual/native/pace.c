#include <time.h>

#include "pace.h"

#define BATCH 16384 /* actions: some 10 ms */
#define TRIES 64    /* one of so many batches tries the way that seems slower */
#define LATEST 0.25 /* weight of the latest batch: what an action takes differs from phase to phase of a run */
#define MARGIN 1.25 /* windows must seem slower by this factor to be avoided */

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
	faster = ns[1] < MARGIN * ns[0];
	return pace->batches % TRIES ? faster : !faster;
}

static void measure(struct pace *pace, int64_t now_ns, uint64_t happened)
{
	double *ns = &pace->ns_an_action[pace->in_windows];
	double latest = (double)(now_ns - pace->begun_ns) / (double)(happened - pace->begun);

	*ns = *ns ? *ns + LATEST * (latest - *ns) : latest;
}

int pace_in_windows(struct pace *pace, uint64_t happened)
{
	int64_t now_ns;

	if (pace->is_fixed || happened < pace->end)
		return pace->is_fixed || pace->in_windows;
	now_ns = real_ns();
	if (pace->is_clean && happened > pace->begun)
		measure(pace, now_ns, happened);
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
