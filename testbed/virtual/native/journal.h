/* The journal of one part in a window: what it carried out, in order, and what that leaves for the end of the window.
 *
 * What is scheduled in a window has provisional sequence numbers. They are larger than all others, and in order within
 * the part. When the steps of all parts are gone through in the order of a single clock, each provisional number is
 * replaced by the one that a single clock would have given.
 */
#ifndef AGGLAB_JOURNAL_H
#define AGGLAB_JOURNAL_H

#include "clock.h"

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

/* Threads share no cache line of it. */
struct journal {
	_Alignas(CACHE_LINE) int64_t end_ns; /* events before it belong to the window */
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

struct journal *journal_new(void);
void journal_free(struct journal *journal);

/* Begins a window that ends at a time. */
void journal_begin(struct journal *journal, int64_t end_ns);

/* Schedules an event in a window. */
void journal_schedule(struct clock *clock, const struct event *event);
void journal_note(struct clock *clock, note_function note, void *subject, int64_t number, const uint8_t *data,
		  uint32_t bytes);
/* Notes that an event has been carried out. Returns 0 without memory. */
int journal_add_step(struct clock *clock, const struct event *event);

/* Begins to go through the steps. */
void journal_begin_order(struct journal *journal);
/* Gives the numbers of a single clock to what the next step has scheduled, and carries out what it has noted. */
void journal_order_step(struct journal *journal, struct clock *first, struct clock *clock);

/* Puts the events that the window held back in the heap, with their numbers. */
void journal_settle(struct journal *journal, struct clock *clock);

#endif
