#include <stdlib.h>

#include "crew.h"
#include "journal.h"
#include "windows.h"

struct windows {
	struct clocks *all;
	uint32_t parts; /* clocks but the first, each with its journal */
	struct journal **journals;
	uint64_t at_once_max;
	struct crew *crew;
};

static struct clock *part_at(const struct windows *w, uint32_t i)
{
	return w->all->clocks[i + 1];
}

/* Carries out the events of one part in a window. A work_function. */
static void run_part(void *context, uint32_t i)
{
	const struct windows *w = context;
	struct clock *clock = part_at(w, i);
	struct journal *j = w->journals[i];
	uint64_t at_once = 0;

	journal_settle(j, clock);
	clock->journal = j;
	while (clock->waiting && clock->events[0].time_ns < j->end_ns) {
		struct event event = clock_take_earliest(clock);

		at_once = event.time_ns > clock->now_ns ? 0 : at_once + 1;
		clock->now_ns = event.time_ns;
		event.act(clock, event.subject, event.number);
		j->stands_still = at_once > w->at_once_max;
		if (!journal_add_step(clock, &event) || j->unforeseen | j->stands_still | clock->no_memory)
			break;
	}
	clock->journal = NULL;
}

/* Returns the part whose next step comes first; `parts` if none is left. */
static uint32_t earliest_step(const struct windows *w)
{
	uint32_t found = w->parts;
	int64_t time_ns = NEVER_NS;

	for (uint32_t i = 0; i < w->parts; i++) {
		const struct journal *j = w->journals[i];
		int64_t at_ns = j->step_at < j->step_count ? j->steps[j->step_at].time_ns : NEVER_NS;

		if (at_ns < time_ns ||
		    (at_ns == time_ns && found < w->parts && j->sequence < w->journals[found]->sequence)) {
			time_ns = at_ns;
			found = i;
		}
	}
	return found;
}

/* Goes through all steps of a window in the order of a single clock. */
static int order_steps(struct windows *w, struct clock *first)
{
	uint64_t before = first->happened;
	uint32_t i;

	for (i = 0; i < w->parts; i++)
		journal_begin_order(w->journals[i]);
	while ((i = earliest_step(w)) < w->parts) {
		journal_order_step(w->journals[i], first, part_at(w, i));
		if (first->at_once > w->at_once_max)
			return STANDS_STILL;
	}
	first->windows++;
	first->in_windows += first->happened - before;
	return GOES_ON;
}

static int run_window(struct windows *w, struct clock *first, int64_t end_ns)
{
	int stands_still = 0, unforeseen = 0;

	for (uint32_t i = 0; i < w->parts; i++)
		journal_begin(w->journals[i], end_ns);
	if (w->crew)
		crew_work(w->crew);
	else
		for (uint32_t i = 0; i < w->parts; i++)
			run_part(w, i);
	for (uint32_t i = 0; i < w->parts; i++) {
		first->no_memory |= part_at(w, i)->no_memory;
		unforeseen |= (int)w->journals[i]->unforeseen;
		if (w->journals[i]->stands_still) {
			first->now_ns = part_at(w, i)->now_ns;
			stands_still = 1;
		}
	}
	if (unforeseen)
		return UNFORESEEN;
	if (first->no_memory)
		return WAS_STOPPED;
	return stands_still ? STANDS_STILL : order_steps(w, first);
}

void windows_free(struct windows *w)
{
	if (!w)
		return;
	if (w->crew)
		crew_free(w->crew);
	for (uint32_t i = 0; w->journals && i < w->parts; i++)
		journal_free(w->journals[i]);
	free(w->journals);
	free(w);
}

/* Returns 0 without memory. */
static int make_journals(struct windows *w)
{
	w->journals = calloc(w->parts, sizeof(*w->journals));
	if (!w->journals)
		return 0;
	for (uint32_t i = 0; i < w->parts; i++) {
		w->journals[i] = journal_new();
		if (!w->journals[i])
			return 0;
	}
	return 1;
}

/* Returns the windows of a run, which the first one makes; NULL without memory. Without threads, windows still work. */
static struct windows *windows_of(struct clocks *all)
{
	struct windows *w = all->windows;

	if (w)
		return w;
	w = calloc(1, sizeof(*w));
	if (!w)
		return NULL;
	w->all = all;
	w->parts = all->count - 1;
	if (!make_journals(w)) {
		windows_free(w);
		return NULL;
	}
	w->crew = crew_new(w->parts, run_part, w);
	all->windows = w;
	return w;
}

/* Returns whether Python cannot have to act before a time after begin_ns. */
static int are_possible(const struct clock *first, int64_t begin_ns)
{
	const struct clocks *all = first->all;

	if (all->watched || all->corrupting || all->lookahead_ns[0] < 1)
		return 0;
	for (uint32_t i = 1; i < all->count; i++)
		if (all->clocks[i]->unfit)
			return 0;
	return !first->waiting || first->events[0].time_ns > begin_ns;
}

int windows_are_due(struct clock *first, int64_t begin_ns)
{
	if (are_possible(first, begin_ns))
		return pace_in_windows(&first->all->pace, first->happened);
	pace_interrupted(&first->all->pace);
	return 0;
}

/* Returns when the earliest event is due, also of those that the last window held back. */
static int64_t earliest_ns(const struct windows *w)
{
	int64_t found_ns = NEVER_NS;

	for (uint32_t i = 0; i < w->parts; i++) {
		const struct clock *clock = part_at(w, i);

		if (clock->waiting && clock->events[0].time_ns < found_ns)
			found_ns = clock->events[0].time_ns;
		if (w->journals[i]->held_ns < found_ns)
			found_ns = w->journals[i]->held_ns;
	}
	return found_ns;
}

/* Returns the smallest class of the frames that are in use or expected. */
static uint32_t smallest_class(const struct clocks *all)
{
	for (uint32_t class = 0; class < FRAME_CLASSES - 1; class++) {
		int64_t in_use = 0;

		for (uint32_t i = 0; i < all->count; i++)
			in_use += all->clocks[i]->pool.in_use[class];
		if (in_use)
			return class;
	}
	return FRAME_CLASSES - 1;
}

/* Returns the end of a window: before an action of Python, and after the last event that may affect only its part. */
static int64_t end_of_window(const struct clock *first, int64_t begin_ns, int64_t until_ns)
{
	int64_t lookahead_ns = first->all->lookahead_ns[smallest_class(first->all)], end_ns = until_ns;

	if (end_ns < NEVER_NS)
		end_ns++;
	if (end_ns - begin_ns > lookahead_ns)
		end_ns = begin_ns + lookahead_ns;
	if (first->waiting && first->events[0].time_ns < end_ns)
		end_ns = first->events[0].time_ns;
	return end_ns;
}

int windows_run(struct clock *first, int64_t begin_ns, int64_t until_ns, uint64_t most, uint64_t at_once_max)
{
	struct windows *w = windows_of(first->all);
	int result = GOES_ON;

	if (w)
		w->at_once_max = at_once_max;
	else
		first->no_memory = 1;
	while (w && result == GOES_ON && begin_ns <= until_ns && begin_ns < NEVER_NS &&
	       windows_are_due(first, begin_ns)) {
		result = run_window(w, first, end_of_window(first, begin_ns, until_ns));
		if (first->stop | first->no_memory)
			result = WAS_STOPPED;
		else if (result == GOES_ON && first->happened >= most)
			result = HAS_MORE;
		begin_ns = earliest_ns(w);
	}
	for (uint32_t i = 0; w && i < w->parts; i++)
		journal_settle(w->journals[i], part_at(w, i));
	return result;
}
