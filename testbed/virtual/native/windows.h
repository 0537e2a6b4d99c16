/* Windows: spans of virtual time in which the parts of a network cannot affect each other, so that threads run them at
 * the same time. Afterwards everything is as if a single clock had carried out all events in its order.
 *
 * In a window every part keeps a journal of its steps, and what it schedules has provisional sequence numbers. They are
 * larger than all others, and in order within the part. At the end of the window one thread goes through all steps in
 * the order of a single clock, and replaces each provisional number by the one that a single clock would have given.
 */
#ifndef AGGLAB_WINDOWS_H
#define AGGLAB_WINDOWS_H

#include "clock.h"

#define GOES_ON (-1)

/* An event that was carried out. made: how many events the part had scheduled in the window after it. */
struct step {
	int64_t time_ns;
	uint64_t sequence;
	uint64_t made;
};

/* What a step leaves for the end of the window. */
struct note {
	uint64_t step;
	uint64_t made; /* how many events the part had scheduled in the window before */
	note_function note;
	void *subject;
	int64_t number;
	uint64_t data; /* where its data begin */
	uint32_t bytes;
};

struct journal {
	int64_t end_ns; /* events before it belong to the window */
	uint64_t most_at_once;
	uint32_t unforeseen;   /* Python would have to be asked */
	uint32_t stands_still; /* too many events were due at one time */

	struct step *steps;
	uint64_t step_count, step_room;
	uint64_t *made; /* the sequence numbers of what was scheduled, once they are known */
	uint64_t made_count, made_room;
	struct event *held; /* events that were scheduled for a time after the window */
	uint64_t held_count, held_room;
	int64_t held_ns; /* the earliest of them */
	struct note *notes;
	uint64_t note_count, note_room;
	uint8_t *data;
	uint64_t data_bytes, data_room;

	/* How far the end of the window has come. */
	uint64_t step_at, made_at, note_at;
	uint64_t sequence; /* of the next step */
};

/* Schedules an event in a window. */
void journal_schedule(struct clock *clock, const struct event *event);
void journal_note(struct clock *clock, note_function note, void *subject, int64_t number, const uint8_t *data,
		  uint32_t bytes);

/* Returns whether a window is possible at the time of the earliest event, and pays. */
int windows_are_due(struct clock *first, int64_t begin_ns);

/* Runs windows as long as they are due, and until `most` actions have been carried out. Returns GOES_ON, or a reason for the run to end. */
int windows_run(struct clock *first, int64_t begin_ns, int64_t until_ns, uint64_t most, uint64_t at_once_max);

void windows_free(struct windows *windows);

#endif
