/* The clock of virtual time: it carries out actions at their times, in whole nanoseconds. Actions that are due at the
 * same time happen in the order in which they were requested.
 *
 * A large network is cut into parts, and each part has a clock of its own. The first clock leads: Python knows only it,
 * and it runs all of them, one event at a time in the order of a single clock, or in windows (windows.h), which lead to
 * the same order. The first fields of `struct clock` are mirrored in testbed/virtual/clock.py.
 */
#ifndef AGGLAB_CLOCK_H
#define AGGLAB_CLOCK_H

#include <stddef.h>
#include <stdint.h>

#include "frame.h"
#include "pace.h"

#define NS_PER_S UINT64_C(1000000000)
#define NEVER_NS INT64_MAX
#define CACHE_LINE 128 /* two lines, which processors fetch together */

struct clock;
struct clocks;

/* What Python is asked to do, and with which of its objects. */
enum question {
	ACTION,      /* carry out an action of its own */
	FRAME,       /* take a frame that has come over a link, or that no socket in C takes */
	HIT,         /* note that a frame was lost, changed or held up */
	DATAGRAM,    /* give an agent a datagram; number: the peer's index */
	TIMER,       /* an agent's deadline has come */
	FINISH,      /* an agent's round is over */
	FAILED,      /* an agent's round has failed; number: an errno */
	AGAIN,       /* note that an agent sends a row of its outbox again; number: the row; data: a struct repeat */
	EMITTED,     /* note that a switch that is watched sends a frame to a port; number: the port */
	PROCESSED,   /* note that the switch has processed a frame, after its EMITTED; number: the ingress port */
	ARRIVED,     /* note that a frame has come over a link that is tapped */
};

typedef void (*ask_function)(uint32_t question, uint64_t object, int64_t number, const uint8_t *data, uint32_t bytes);
typedef void (*action_function)(struct clock *clock, void *subject, int64_t number);
typedef void (*note_function)(struct clock *clock, void *subject, int64_t number, const uint8_t *data, uint32_t bytes);

struct event {
	int64_t time_ns;
	uint64_t sequence;
	action_function act;
	void *subject;
	int64_t number;
	const struct frame *frame; /* a frame that the action reads; NULL for none */
};

/* Threads share no cache line of it. */
struct clock {
	_Alignas(CACHE_LINE) int64_t now_ns;
	uint64_t happened; /* actions carried out so far; of the first clock: by all clocks */
	uint64_t at_once;  /* actions at this moment */
	uint64_t windows;  /* how many windows there have been (windows.h) */
	uint64_t in_windows; /* actions carried out in them */
	uint32_t stop;     /* set to end clock_run after the present action */
	uint32_t no_memory;

	struct clocks *all;
	struct event *events; /* a heap of `waiting` events */
	uint64_t waiting, room;
	struct pool pool;
	uint64_t unfit;         /* agents that may need Python at any event */
	struct journal *journal; /* NULL except in a window */
};

/* What all clocks of a run share. */
struct clocks {
	ask_function ask;
	uint64_t sequence; /* of the event that was scheduled last */
	struct clock **clocks;
	uint32_t count;
	uint32_t watched;     /* Python is told of frames that arrive or are processed */
	uint32_t corrupting;  /* directions that change frames, which then are Python's to take */
	/* The least time after which an event has an effect on another part of the network, by the class of the shortest
	 * frame that there can be. */
	int64_t lookahead_ns[FRAME_CLASSES];
	struct pace pace;
	struct windows *windows;
};

enum reason { IS_OVER, WAS_STOPPED, HAS_MORE, STANDS_STILL, UNFORESEEN };

struct clock *clock_new(ask_function ask);
/* Returns a further clock, for a part of the network; NULL without memory. It is freed with the first one. */
struct clock *clock_part(struct clock *first);
void clock_free(struct clock *first);

/* Calls act(clock, subject, number) at a time that is not past. */
void clock_at(struct clock *clock, int64_t time_ns, action_function act, void *subject, int64_t number);
/* The same for an action that reads a frame, which is brought into the cache before. */
void clock_at_with(struct clock *clock, int64_t time_ns, action_function act, void *subject, int64_t number,
		   const struct frame *frame);

/* Asks Python at that time to carry out action `number`. */
void clock_ask_at(struct clock *first, int64_t time_ns, int64_t number);

/* Asks Python now. In a window nothing can be asked: then the run ends as UNFORESEEN. */
void clock_ask(struct clock *clock, uint32_t question, uint64_t object, int64_t number, const uint8_t *data,
	       uint32_t bytes);

/* Calls note(clock, subject, number, data, bytes), which must have no effect on what happens in the network: now, or at
 * the end of the window in the order of a single clock. */
void clock_note(struct clock *clock, note_function note, void *subject, int64_t number, const uint8_t *data,
		uint32_t bytes);

/* Notes that an event of one part can have an effect on another one after this time, if no frame is of a smaller class.
 */
void clock_look_ahead(struct clock *clock, uint32_t class, int64_t least_ns);

/* Runs until until_ns, for about `most` actions, or until `stop` is set or more than at_once_max actions are due at one
 * time. */
int clock_run(struct clock *first, int64_t until_ns, uint64_t most, uint64_t at_once_max);

/* Runs windows in threads wherever they are possible, also if that takes longer: for tests. */
void clock_always_in_windows(struct clock *first);

/* Ends the threads, until a window needs them again. */
void clock_rest(struct clock *first);

/* Returns whether no event is waiting. */
int clock_is_idle(const struct clock *first);

/* Puts an event in the heap. */
void clock_push(struct clock *clock, const struct event *event);
struct event clock_take_earliest(struct clock *clock);

/* Makes room for count more elements after `used` in an array, which may move. Returns 0 without memory. */
int grow(struct clock *clock, void *array, uint64_t *room, uint64_t used, size_t element_bytes);

uint32_t clock_layout(void); /* where the fields that Python knows end */

#endif
