/* The clock of virtual time: it carries out actions at their times, in whole nanoseconds. Actions that are due at the
 * same time happen in the order in which they were requested. The first fields of `struct clock` are mirrored in
 * testbed/virtual/clock.py.
 */
#ifndef AGGLAB_CLOCK_H
#define AGGLAB_CLOCK_H

#include <stddef.h>
#include <stdint.h>

#include "frame.h"

#define NS_PER_S UINT64_C(1000000000)
#define NEVER_NS INT64_MAX

struct clock;

/* What Python is asked to do, and with which of its objects. */
enum question {
	ACTION,      /* carry out an action of its own */
	FRAME,       /* take a frame that has come over a link, or that no socket in C takes */
	HIT,         /* note that a frame was lost, changed or held up */
	DATAGRAM,    /* give an agent a datagram; number: the peer's index */
	TIMER,       /* an agent's deadline has come */
	ACT,         /* an agent's endpoint needs its part in Python */
	FINISH,      /* an agent's round is over */
	FAILED,      /* an agent's round has failed; number: an errno */
	AGAIN,       /* note that an agent sends a row of its outbox again; number: the row */
	LOCAL,       /* send a datagram of an agent to its own host; number: the peer's index */
	EMITTED,     /* note that a switch that is watched sends a frame to a port; number: the port */
	PROCESSED,   /* note that the switch has processed a frame, after its EMITTED; number: the ingress port */
	ARRIVED,     /* note that a frame has come over a link that is tapped */
};

typedef void (*ask_function)(uint32_t question, uint64_t object, int64_t number, const uint8_t *data, uint32_t bytes);
typedef void (*action_function)(struct clock *clock, void *subject, int64_t number);

struct event {
	int64_t time_ns;
	uint64_t sequence;
	action_function act;
	void *subject;
	int64_t number;
	const struct frame *frame; /* a frame that the action reads; NULL for none */
};

struct clock {
	int64_t now_ns;
	uint64_t happened; /* actions carried out so far */
	uint64_t at_once;  /* actions at this moment */
	uint32_t stop;     /* set to end clock_run after the present action */
	uint32_t no_memory;

	ask_function ask;
	uint64_t sequence;    /* of the event that was scheduled last */
	struct event *events; /* a heap of `waiting` events */
	uint64_t waiting, room;
	struct pool pool;
};

enum reason { IS_OVER, WAS_STOPPED, HAS_MORE, STANDS_STILL };

struct clock *clock_new(ask_function ask);
void clock_free(struct clock *clock);

/* Calls act(clock, subject, number) at a time that is not past. */
void clock_at(struct clock *clock, int64_t time_ns, action_function act, void *subject, int64_t number);
/* The same for an action that reads a frame, which is brought into the cache before. */
void clock_at_with(struct clock *clock, int64_t time_ns, action_function act, void *subject, int64_t number,
		   const struct frame *frame);

/* Asks Python at that time to carry out action `number`. */
void clock_ask_at(struct clock *clock, int64_t time_ns, int64_t number);

/* Asks Python now. */
void clock_ask(struct clock *clock, uint32_t question, uint64_t object, int64_t number, const uint8_t *data,
	       uint32_t bytes);

/* Runs until until_ns, for about `most` actions, or until `stop` is set or more than at_once_max actions are due at one
 * time. */
int clock_run(struct clock *clock, int64_t until_ns, uint64_t most, uint64_t at_once_max);

/* Returns whether no event is waiting. */
int clock_is_idle(const struct clock *clock);

/* Makes room for count more elements after `used` in an array, which may move. Returns 0 without memory. */
int grow(struct clock *clock, void *array, uint64_t *room, uint64_t used, size_t element_bytes);

uint32_t clock_layout(void); /* where the fields that Python knows end */

#endif
