#include <stdlib.h>
#include <string.h>

#include "crew.h"
#include "windows.h"

#define PROVISIONAL (UINT64_C(1) << 63) /* the first provisional sequence number */
#define CACHE_LINE 128                  /* two lines, which processors fetch together */
#define ROOM_OF_JOURNAL ((sizeof(struct journal) + CACHE_LINE - 1) / CACHE_LINE * CACHE_LINE)

struct windows {
	struct clocks *all;
	uint32_t parts; /* clocks but the first, each with its journal */
	struct journal **journals;
	struct crew *crew;
};

static struct clock *part_at(const struct windows *w, uint32_t i)
{
	return w->all->clocks[i + 1];
}

void journal_schedule(struct clock *clock, const struct event *event)
{
	struct journal *j = clock->journal;
	struct event made = *event;

	if (!grow(clock, &j->made, &j->made_room, j->made_count, sizeof(*j->made)))
		return;
	made.sequence = PROVISIONAL + j->made_count++;
	if (made.time_ns < j->end_ns) {
		clock_push(clock, &made);
	} else if (grow(clock, &j->held, &j->held_room, j->held_count, sizeof(made))) {
		j->held[j->held_count++] = made;
		if (made.time_ns < j->held_ns)
			j->held_ns = made.time_ns;
	}
}

void journal_note(struct clock *clock, note_function note, void *subject, int64_t number, const uint8_t *data,
		  uint32_t bytes)
{
	struct journal *j = clock->journal;

	if (!grow(clock, &j->notes, &j->note_room, j->note_count, sizeof(*j->notes)))
		return;
	while (j->data_bytes + bytes > j->data_room)
		if (!grow(clock, &j->data, &j->data_room, j->data_room, 1))
			return;
	j->notes[j->note_count++] =
		(struct note){j->step_count, j->made_count, note, subject, number, j->data_bytes, bytes};
	if (bytes)
		memcpy(j->data + j->data_bytes, data, bytes);
	j->data_bytes += bytes;
}

/* Puts events that the last window held back in the heap. */
static void settle(struct clock *clock, struct journal *j)
{
	for (uint64_t i = 0; i < j->held_count; i++) {
		struct event event = j->held[i];

		event.sequence = j->made[event.sequence - PROVISIONAL];
		clock_push(clock, &event);
	}
	j->held_count = j->made_count = 0;
	j->held_ns = NEVER_NS;
}

/* Carries out the events of one part in a window. A work_function. */
static void run_part(void *context, uint32_t i)
{
	const struct windows *w = context;
	struct clock *clock = part_at(w, i);
	struct journal *j = w->journals[i];
	uint64_t at_once = 0;

	settle(clock, j);
	clock->journal = j;
	while (clock->waiting && clock->events[0].time_ns < j->end_ns) {
		struct event event;

		if (!grow(clock, &j->steps, &j->step_room, j->step_count, sizeof(*j->steps)))
			break;
		event = clock_take_earliest(clock);
		at_once = event.time_ns > clock->now_ns ? 0 : at_once + 1;
		clock->now_ns = event.time_ns;
		event.act(clock, event.subject, event.number);
		j->steps[j->step_count++] = (struct step){event.time_ns, event.sequence, j->made_count};
		j->stands_still = at_once > j->most_at_once;
		if (j->unforeseen | j->stands_still | clock->no_memory)
			break;
	}
	clock->journal = NULL;
}

static void take_notes(struct clock *clock, struct journal *j)
{
	while (j->note_at < j->note_count) {
		const struct note *n = &j->notes[j->note_at];

		if (n->step != j->step_at || n->made > j->made_at)
			return;
		j->note_at++;
		n->note(clock, n->subject, n->number, j->data + n->data, n->bytes);
	}
}

static void find_sequence(struct journal *j)
{
	if (j->step_at == j->step_count)
		return;
	j->sequence = j->steps[j->step_at].sequence;
	if (j->sequence >= PROVISIONAL)
		j->sequence = j->made[j->sequence - PROVISIONAL];
}

/* Gives the numbers of a single clock to what a step has scheduled, and carries out what it has left. */
static void order_step(struct clock *first, struct clock *clock, struct journal *j)
{
	const struct step *step = &j->steps[j->step_at];
	uint64_t *sequence = &clock->all->sequence;

	first->at_once = step->time_ns > first->now_ns ? 0 : first->at_once + 1;
	first->now_ns = clock->now_ns = step->time_ns;
	first->happened++;
	if (j->note_at < j->note_count && j->notes[j->note_at].step == j->step_at) {
		for (; j->made_at < step->made; j->made_at++) {
			take_notes(clock, j);
			j->made[j->made_at] = ++*sequence;
		}
		take_notes(clock, j);
	} else {
		while (j->made_at < step->made)
			j->made[j->made_at++] = ++*sequence;
	}
	j->step_at++;
	find_sequence(j);
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

static void begin_journal(struct journal *j, int64_t end_ns, uint64_t at_once_max)
{
	j->end_ns = end_ns;
	j->most_at_once = at_once_max;
	j->step_count = j->note_count = j->data_bytes = 0;
}

static void begin_order(struct journal *j)
{
	j->step_at = j->made_at = j->note_at = 0;
	find_sequence(j);
}

/* Goes through all steps of a window in the order of a single clock. */
static int order_steps(struct windows *w, struct clock *first, uint64_t at_once_max)
{
	uint64_t before = first->happened;
	uint32_t i;

	for (i = 0; i < w->parts; i++)
		begin_order(w->journals[i]);
	while ((i = earliest_step(w)) < w->parts) {
		order_step(first, part_at(w, i), w->journals[i]);
		if (first->at_once > at_once_max)
			return STANDS_STILL;
	}
	first->windows++;
	first->in_windows += first->happened - before;
	return GOES_ON;
}

static int run_window(struct windows *w, struct clock *first, int64_t end_ns, uint64_t at_once_max)
{
	int stands_still = 0, unforeseen = 0;

	for (uint32_t i = 0; i < w->parts; i++)
		begin_journal(w->journals[i], end_ns, at_once_max);
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
	return stands_still ? STANDS_STILL : order_steps(w, first, at_once_max);
}

static void free_journal(struct journal *j)
{
	if (!j)
		return;
	free(j->steps);
	free(j->made);
	free(j->held);
	free(j->notes);
	free(j->data);
	free(j);
}

void windows_free(struct windows *w)
{
	if (!w)
		return;
	if (w->crew)
		crew_free(w->crew);
	for (uint32_t i = 0; w->journals && i < w->parts; i++)
		free_journal(w->journals[i]);
	free(w->journals);
	free(w);
}

/* Returns the windows of a run, which the first one makes; NULL without memory. Without threads, windows still work. */
static struct windows *windows_of(struct clocks *all)
{
	struct windows *w = all->windows;

	if (w)
		return w;
	all->windows = w = calloc(1, sizeof(*w));
	if (!w)
		return NULL;
	w->all = all;
	w->parts = all->count - 1;
	w->journals = calloc(w->parts, sizeof(*w->journals));
	for (uint32_t i = 0; w->journals && i < w->parts; i++) {
		w->journals[i] = aligned_alloc(CACHE_LINE, ROOM_OF_JOURNAL);
		if (!w->journals[i])
			return NULL;
		*w->journals[i] = (struct journal){.held_ns = NEVER_NS};
	}
	if (!w->journals)
		return NULL;
	w->crew = crew_new(w->parts, run_part, w);
	return w;
}

/* Returns whether Python cannot have to act before a time after begin_ns. */
static int are_possible(const struct clock *first, int64_t begin_ns)
{
	const struct clocks *all = first->all;

	if (all->watched || all->corrupting || all->lookahead_ns < 1)
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

/* Returns the end of a window: before an action of Python, and after the last event that may affect only its part. */
static int64_t end_of_window(const struct clock *first, int64_t begin_ns, int64_t until_ns)
{
	int64_t lookahead_ns = first->all->lookahead_ns, end_ns = until_ns;

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

	if (!w)
		first->no_memory = 1;
	while (w && result == GOES_ON && begin_ns <= until_ns && begin_ns < NEVER_NS &&
	       windows_are_due(first, begin_ns)) {
		result = run_window(w, first, end_of_window(first, begin_ns, until_ns), at_once_max);
		if (first->stop | first->no_memory)
			result = WAS_STOPPED;
		else if (result == GOES_ON && first->happened >= most)
			result = HAS_MORE;
		begin_ns = earliest_ns(w);
	}
	for (uint32_t i = 0; w && i < w->parts; i++)
		settle(part_at(w, i), w->journals[i]);
	return result;
}
