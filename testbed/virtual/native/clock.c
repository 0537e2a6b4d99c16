#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "clock.h"

#define CHILDREN 4 /* children of a node of the heap */

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

void clock_at(struct clock *clock, int64_t time_ns, action_function act, void *subject, int64_t number)
{
	struct event event = {time_ns, ++clock->sequence, act, subject, number};
	struct event *events;
	uint64_t at = clock->waiting;

	assert(time_ns >= clock->now_ns);
	if (!grow(clock, &clock->events, &clock->room, at, sizeof(event)))
		return;
	events = clock->events;
	clock->waiting++;
	while (at && is_before(&event, &events[(at - 1) / CHILDREN])) {
		events[at] = events[(at - 1) / CHILDREN];
		at = (at - 1) / CHILDREN;
	}
	events[at] = event;
}

static uint64_t earliest_child(const struct clock *clock, uint64_t at)
{
	uint64_t first = at * CHILDREN + 1, found = first;

	for (uint64_t child = first + 1; child < first + CHILDREN && child < clock->waiting; child++)
		if (is_before(&clock->events[child], &clock->events[found]))
			found = child;
	return found;
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
	if (clock->waiting)
		clock->events[at] = last;
	return earliest;
}

static void ask_for_action(struct clock *clock, void *subject, int64_t number)
{
	(void)subject;
	clock->ask(ACTION, 0, number, NULL, 0);
}

void clock_ask_at(struct clock *clock, int64_t time_ns, int64_t number)
{
	clock_at(clock, time_ns, ask_for_action, NULL, number);
}

int clock_run(struct clock *clock, int64_t until_ns, uint64_t most, uint64_t at_once_max)
{
	while (clock->waiting && clock->events[0].time_ns <= until_ns) {
		struct event event;

		if (!most--)
			return HAS_MORE;
		event = take_earliest(clock);
		clock->at_once = event.time_ns > clock->now_ns ? 0 : clock->at_once + 1;
		if (clock->at_once > at_once_max)
			return STANDS_STILL;
		clock->now_ns = event.time_ns;
		clock->happened++;
		event.act(clock, event.subject, event.number);
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
