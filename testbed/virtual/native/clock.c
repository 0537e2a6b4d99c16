#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "clock.h"
#include "journal.h"
#include "prefetch.h"
#include "windows.h"

#define CHILDREN 4 /* children of a node of the heap */
/* How much is fetched ahead: a link, and a frame of an Ethernet with the usual MTU. Memory behind a shorter frame is
 * fetched in vain. */
#define SUBJECT_BYTES 320
#define FRAME_BYTES 1536

struct clock *clock_part(struct clock *first)
{
	struct clocks *all = first->all;
	struct clock **clocks = realloc(all->clocks, (all->count + 1) * sizeof(*clocks));
	struct clock *clock = aligned_alloc(CACHE_LINE, sizeof(*clock));

	if (clocks)
		all->clocks = clocks;
	if (!clocks || !clock) {
		free(clock);
		return NULL;
	}
	*clock = (struct clock){.now_ns = first->now_ns, .all = all};
	clocks[all->count++] = clock;
	return clock;
}

struct clock *clock_new(ask_function ask)
{
	struct clocks *all = calloc(1, sizeof(*all));
	struct clock start = {.all = all}, *first;

	if (!all)
		return NULL;
	all->ask = ask;
	for (uint32_t class = 0; class < FRAME_CLASSES; class++)
		all->lookahead_ns[class] = NEVER_NS;
	first = clock_part(&start);
	if (!first) {
		free(all->clocks);
		free(all);
	}
	return first;
}

void clock_free(struct clock *first)
{
	struct clocks *all = first->all;

	windows_free(all->windows);
	for (uint32_t i = 0; i < all->count; i++) {
		pool_free(&all->clocks[i]->pool);
		free(all->clocks[i]->events);
		free(all->clocks[i]);
	}
	free(all->clocks);
	free(all);
}

int grow(struct clock *clock, void *array, uint64_t *room, uint64_t used, size_t element_bytes)
{
	void **memory = array, *larger;
	uint64_t wanted = *room ? 2 * *room : 16;

	if (used < *room)
		return 1;
	larger = realloc(*memory, wanted * element_bytes);
	if (!larger) {
		clock->no_memory = 1;
		return 0;
	}
	*memory = larger;
	*room = wanted;
	return 1;
}

static int is_before(const struct event *a, const struct event *b)
{
	return a->time_ns < b->time_ns || (a->time_ns == b->time_ns && a->sequence < b->sequence);
}

void clock_push(struct clock *clock, const struct event *event)
{
	struct event *events;
	uint64_t at = clock->waiting;

	if (!grow(clock, &clock->events, &clock->room, at, sizeof(*event)))
		return;
	events = clock->events;
	clock->waiting++;
	while (at && is_before(event, &events[(at - 1) / CHILDREN])) {
		events[at] = events[(at - 1) / CHILDREN];
		at = (at - 1) / CHILDREN;
	}
	events[at] = *event;
}

void clock_at(struct clock *clock, int64_t time_ns, action_function act, void *subject, int64_t number)
{
	clock_at_with(clock, time_ns, act, subject, number, NULL);
}

void clock_at_with(struct clock *clock, int64_t time_ns, action_function act, void *subject, int64_t number,
		   const struct frame *frame)
{
	struct event event = {time_ns, 0, act, subject, number, frame};

	assert(time_ns >= clock->now_ns);
	if (clock->journal) {
		journal_schedule(clock, &event);
		return;
	}
	event.sequence = ++clock->all->sequence;
	clock_push(clock, &event);
}

static uint64_t earliest_child(const struct clock *clock, uint64_t at)
{
	uint64_t first = at * CHILDREN + 1, found = first;

	for (uint64_t child = first + 1; child < first + CHILDREN && child < clock->waiting; child++)
		if (is_before(&clock->events[child], &clock->events[found]))
			found = child;
	return found;
}

/* Brings what the next action reads into the cache while the present one is carried out. With 1024 workers, the clock
 * takes 13 % less time. */
static void fetch_ahead(const struct event *next)
{
	prefetch(next->subject, SUBJECT_BYTES);
	if (next->frame)
		prefetch(next->frame, FRAME_BYTES);
}

struct event clock_take_earliest(struct clock *clock)
{
	struct event earliest = clock->events[0], last = clock->events[--clock->waiting];
	uint64_t at = 0;

	while (at * CHILDREN + 1 < clock->waiting) {
		uint64_t child = earliest_child(clock, at);

		if (!is_before(&clock->events[child], &last))
			break;
		clock->events[at] = clock->events[child];
		at = child;
	}
	if (clock->waiting) {
		clock->events[at] = last;
		fetch_ahead(&clock->events[0]);
	}
	return earliest;
}

/* Returns the clock with the earliest event; NULL if no event waits. */
static struct clock *earliest_clock(const struct clocks *all)
{
	struct clock *found = NULL;

	for (uint32_t i = 0; i < all->count; i++) {
		struct clock *clock = all->clocks[i];

		if (clock->waiting && (!found || is_before(&clock->events[0], &found->events[0])))
			found = clock;
	}
	return found;
}

int clock_is_idle(const struct clock *first)
{
	return !earliest_clock(first->all);
}

void clock_always_in_windows(struct clock *first)
{
	first->all->pace.is_fixed = 1;
}

static void set_all(struct clocks *all, int64_t now_ns)
{
	for (uint32_t i = 0; i < all->count; i++)
		all->clocks[i]->now_ns = now_ns;
}

void clock_ask(struct clock *clock, uint32_t question, uint64_t object, int64_t number, const uint8_t *data,
	       uint32_t bytes)
{
	if (clock->journal) {
		clock->journal->unforeseen = 1;
		return;
	}
	set_all(clock->all, clock->now_ns); /* Python may use any node */
	clock->all->ask(question, object, number, data, bytes);
}

void clock_note(struct clock *clock, note_function note, void *subject, int64_t number, const uint8_t *data,
		uint32_t bytes)
{
	if (clock->journal)
		journal_note(clock, note, subject, number, data, bytes);
	else
		note(clock, subject, number, data, bytes);
}

void clock_look_ahead(struct clock *clock, uint32_t class, int64_t least_ns)
{
	int64_t *lookahead_ns = &clock->all->lookahead_ns[class];

	if (least_ns < *lookahead_ns)
		*lookahead_ns = least_ns;
}

static void ask_for_action(struct clock *clock, void *subject, int64_t number)
{
	(void)subject;
	clock_ask(clock, ACTION, 0, number, NULL, 0);
}

void clock_ask_at(struct clock *first, int64_t time_ns, int64_t number)
{
	clock_at(first, time_ns, ask_for_action, NULL, number);
}

/* Carries out a clock's earliest event. Returns 0 if too many are due at one time. */
static int step(struct clock *first, struct clock *clock, uint64_t at_once_max)
{
	struct event event = clock_take_earliest(clock);

	first->at_once = event.time_ns > first->now_ns ? 0 : first->at_once + 1;
	if (first->at_once > at_once_max)
		return 0;
	first->now_ns = clock->now_ns = event.time_ns;
	first->happened++;
	event.act(clock, event.subject, event.number);
	first->no_memory |= clock->no_memory;
	return 1;
}

static int run_alone(struct clock *first, int64_t until_ns, uint64_t last, uint64_t at_once_max)
{
	while (first->waiting && first->events[0].time_ns <= until_ns) {
		if (first->happened >= last)
			return HAS_MORE;
		if (!step(first, first, at_once_max))
			return STANDS_STILL;
		if (first->stop | first->no_memory)
			return WAS_STOPPED;
	}
	return IS_OVER;
}

static int run_parts(struct clock *first, int64_t until_ns, uint64_t last, uint64_t at_once_max)
{
	struct clock *clock;

	while ((clock = earliest_clock(first->all)) && clock->events[0].time_ns <= until_ns) {
		int reason;

		if (first->happened >= last)
			return HAS_MORE;
		if (windows_are_due(first, clock->events[0].time_ns))
			reason = windows_run(first, clock->events[0].time_ns, until_ns, last, at_once_max);
		else
			reason = step(first, clock, at_once_max) ? GOES_ON : STANDS_STILL;
		if (reason != GOES_ON)
			return reason;
		if (first->stop | first->no_memory)
			return WAS_STOPPED;
	}
	return IS_OVER;
}

void clock_rest(struct clock *first)
{
	windows_free(first->all->windows);
	first->all->windows = NULL;
}

int clock_run(struct clock *first, int64_t until_ns, uint64_t most, uint64_t at_once_max)
{
	int (*run)(struct clock *, int64_t, uint64_t, uint64_t) = first->all->count == 1 ? run_alone : run_parts;
	int reason = run(first, until_ns, first->happened + most, at_once_max);

	if (reason == IS_OVER && until_ns > first->now_ns)
		first->now_ns = until_ns;
	set_all(first->all, first->now_ns);
	return reason;
}

uint32_t clock_layout(void)
{
	return (uint32_t)offsetof(struct clock, all);
}
