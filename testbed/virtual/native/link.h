/* One direction of a link in virtual time: a queue, a rate, a delay, and what impairments do at its end.
 *
 * A frame is begun to be sent when the one before it has been sent whole; it arrives when its own last bit has been sent
 * and the delay is over. The queue in front holds frames that are not begun yet. The structures up to `struct counts` are
 * mirrored in testbed/virtual/links.py.
 */
#ifndef AGGLAB_LINK_H
#define AGGLAB_LINK_H

#include "clock.h"
#include "decisions.h"

#define NUMBERS_KEPT 65536 /* of dropped frames, as the kernel's twin keeps */

/* Gives a frame, which is the receiver's from then on, to a port of a node. */
typedef void (*deliver_function)(struct clock *clock, void *node, uint16_t port, struct frame *frame);

struct counts {
	uint64_t packets, bytes; /* taken into the queue */
	uint64_t seen;           /* arrived */
	uint64_t refused;        /* by a full queue */
	uint64_t dropped;        /* by impairments */
	uint64_t corrupted, lost, copied;
	uint64_t held;           /* kept back by impairments at present */
	uint64_t handed_over;
	uint64_t in_flight;      /* waiting, being sent and under way at present */
	uint64_t numbers;        /* of dropped frames that are kept */
};

/* How one direction is built; rate_bps 0: without limit. One of the two limits of the queue is 0. */
struct link_settings {
	uint64_t rate_bps;
	uint64_t delay_ns;
	uint64_t queue_bytes;
	uint64_t queue_packets;
};

/* What one look sees. carried: bytes of frames that have been sent whole; waiting: of those that are not begun. */
struct look {
	uint64_t carried_bytes;
	uint64_t waiting_packets;
	uint64_t waiting_bytes;
};

struct flight {
	int64_t begin_ns;  /* when its first bit is sent */
	int64_t arrive_ns; /* when its last one arrives */
	struct frame *frame;
};

struct link {
	struct counts counts;
	struct clock *clock;
	struct link_settings settings;
	uint64_t rate_bps; /* at present */
	int64_t free_ns;   /* when all frames are sent */
	uint32_t down;     /* how many faults take it down */
	uint32_t tapped;   /* Python is told of every frame that is handed over */

	/* Where frames go: a node in C, or (NULL) Python's object. */
	deliver_function deliver;
	void *node;
	uint16_t port;
	uint64_t object;

	struct decider **deciders;
	uint32_t decider_count;
	uint64_t *numbers;
	uint64_t numbers_room;

	/* In order. Only the first has an event, with the number of the schedule it belongs to: a new schedule voids the
	 * old one's. */
	struct flight *flights; /* a ring of room, a power of two */
	uint64_t room, head;
	uint64_t flying_bytes;
	int64_t schedule;
};

struct link *link_new(struct clock *clock, const struct link_settings *settings, uint64_t object);
void link_free(struct link *link);

/* Its frames go to a port of a node in C from then on. */
void link_to(struct link *link, deliver_function deliver, void *node, uint16_t port);

void link_tap(struct link *link);

/* Puts a frame, which is the link's from then on, at the end of the queue, or loses it if that is full. */
void link_send(struct link *link, struct frame *frame);
void link_send_copy(struct link *link, const uint8_t *data, uint32_t bytes);

/* Which impairments decide, in their order. The array and what it points to stay Python's. */
void link_impair(struct link *link, struct decider **deciders, uint32_t count);

/* Nothing arrives while change is 1 more often than -1 so far. What is sent uses the link's time all the same. */
void link_down(struct link *link, int32_t change);

/* For frames that are not begun; the one that is being sent keeps its rate. */
void link_change_rate(struct link *link, uint64_t rate_bps);

void link_look(const struct link *link, struct look *look);
const uint64_t *link_dropped_numbers(const struct link *link);

#endif
