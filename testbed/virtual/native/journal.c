#include <stdlib.h>
#include <string.h>

#include "journal.h"

#define PROVISIONAL (UINT64_C(1) << 63) /* the first provisional sequence number */

struct journal *journal_new(void)
{
	struct journal *j = aligned_alloc(CACHE_LINE, sizeof(*j));

	if (j)
		*j = (struct journal){.held_ns = NEVER_NS};
	return j;
}

void journal_free(struct journal *j)
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

void journal_begin(struct journal *j, int64_t end_ns)
{
	j->end_ns = end_ns;
	j->step_count = j->note_count = j->data_bytes = 0;
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

int journal_add_step(struct clock *clock, const struct event *event)
{
	struct journal *j = clock->journal;

	if (!grow(clock, &j->steps, &j->step_room, j->step_count, sizeof(*j->steps)))
		return 0;
	j->steps[j->step_count++] = (struct step){event->time_ns, event->sequence, j->made_count};
	return 1;
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

void journal_begin_order(struct journal *j)
{
	j->step_at = j->made_at = j->note_at = 0;
	find_sequence(j);
}

void journal_order_step(struct journal *j, struct clock *first, struct clock *clock)
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

void journal_settle(struct journal *j, struct clock *clock)
{
	for (uint64_t i = 0; i < j->held_count; i++) {
		struct event event = j->held[i];

		event.sequence = j->made[event.sequence - PROVISIONAL];
		clock_push(clock, &event);
	}
	j->held_count = j->made_count = 0;
	j->held_ns = NEVER_NS;
}
