/* One direction of a link in virtual time: a queue, a rate, a delay, and what impairments do at its end.
 *
 * A frame is begun to be sent when the one before it has been sent whole; it arrives when its own last bit has been
 * sent and the delay is over. The queue in front holds frames that are not begun yet. The structures up to `struct
 * counts` are mirrored in testbed/virtual/links.py.
 */
#ifndef AGGLAB_LINK_H
#define AGGLAB_LINK_H

#include "clock.h"
#include "decisions.h"

#define NUMBERS_KEPT 65536 /* dropped frames whose numbers are kept, as on real links */

/* Gives a frame to a port of a node, which owns it from then on. */
typedef void (*deliver_function)(struct clock *clock, void *node, uint16_t port, struct frame *frame);

struct counts {
	uint64_t packets, bytes; /* frames that the queue took */
	uint64_t seen;           /* arrived */
	uint64_t refused;        /* frames that found the queue full */
	uint64_t dropped;        /* frames dropped by impairments */
	uint64_t corrupted, lost, copied;
	uint64_t held;           /* frames that impairments hold back at present */
	uint64_t handed_over;
	uint64_t in_flight;      /* frames that wait, are being sent or under way at present */
	uint64_t numbers;        /* how many numbers of dropped frames are kept */
};

/* Settings of a direction. rate_bps 0: no limit. One of the two limits of the queue is 0. */
struct link_settings {
	uint64_t rate_bps;
	uint64_t delay_ns;
	uint64_t queue_bytes;
	uint64_t queue_packets;
};

/* A sample of a direction. carried: frames that have been sent whole; waiting: frames that are not begun. */
struct look {
	uint64_t carried_bytes;
	uint64_t waiting_packets;
	uint64_t waiting_bytes;
};

struct flight {
	int64_t begin_ns;  /* when its first bit is sent */
	int64_t arrive_ns; /* when its last bit arrives */
	struct frame *frame;
	uint64_t bytes;
};

struct link {
	struct counts counts;
	struct clock *clock;
	struct link_settings settings;
	uint64_t rate_bps; /* present rate, which a fault may change */
	int64_t free_ns;   /* when all frames will have been sent */
	uint32_t down;     /* how many faults keep the link down at present */
	uint32_t tapped;   /* whether Python is told of every frame that is delivered */

	/* Where frames go: to a node in C, or if that is NULL to Python's object. */
	deliver_function deliver;
	void *node;
	uint16_t port;
	uint64_t object;

	struct decider **deciders;
	uint32_t decider_count;
	uint64_t *numbers;
	uint64_t numbers_room;

	/* Frames in order. Only the first has an event. The event has the number of its schedule; a new schedule makes
	 * older events void. */
	struct flight *flights; /* a ring with `room` entries, a power of two */
	uint64_t room, head;
	uint64_t flying_bytes;
	int64_t schedule;
};

/* Notes that a frame was lost, changed or held up. */
void note_hit(struct clock *clock, const struct frame *frame);

struct link *link_new(struct clock *clock, const struct link_settings *settings, uint64_t object);
void link_free(struct link *link);

/* From then on, frames go to a port of a node in C. */
void link_to(struct link *link, deliver_function deliver, void *node, uint16_t port);

void link_tap(struct link *link);

/* Puts a frame at the end of the queue, and owns it from then on. A full queue drops it. */
void link_send(struct link *link, struct frame *frame);
void link_send_copy(struct link *link, const uint8_t *data, uint32_t bytes);

/* Sets the impairments, in order. Python keeps ownership of the array and its elements. */
void link_impair(struct link *link, struct decider **deciders, uint32_t count);

/* Takes the link down (change 1) or up (-1); both nest. While it is down, frames are sent but do not arrive. */
void link_down(struct link *link, int32_t change);

/* Changes the rate for frames that are not begun; the frame that is being sent keeps its rate. */
void link_change_rate(struct link *link, uint64_t rate_bps);

void link_look(const struct link *link, struct look *look);
const uint64_t *link_dropped_numbers(const struct link *link);

#endif
