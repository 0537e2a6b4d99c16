/* What all endpoints share whose step for each packet is in C. The state of each begins with a struct endpoint, which
 * hosts/native_structures.py declares.
 *
 * A worker's packets wait for answers in the first rows of its outbox: row r belongs to path r % path_count, the way to
 * one peer or to several that answer together. The other rows are sent once. A server has no paths.
 */
#ifndef AGGLAB_ENDPOINT_H
#define AGGLAB_ENDPOINT_H

#include "outbox.h"
#include "recovery.h"
#include "structures.h"
#include "wire.h"

/* Takes a datagram. Returns whether it was awaited. */
typedef int take_function(struct endpoint *e, int64_t now_ns, const uint8_t *datagram, uint32_t length, uint32_t peer);

static inline uint8_t *endpoint_row(const struct endpoint *e, uint32_t row)
{
	return outbox_frame(&e->outbox, row);
}

static inline struct pending *endpoint_pending(const struct endpoint *e, uint32_t row)
{
	return (struct pending *)(e->pendings + row * e->pending_stride);
}

static inline struct recovery *endpoint_path(const struct endpoint *e, uint32_t row)
{
	return e->paths[row % e->path_count];
}

static inline uint32_t endpoint_in_flight(const struct endpoint *e)
{
	uint32_t count = 0;

	for (uint32_t i = 0; i < e->recovery_count; i++)
		count += e->recoveries[i].in_flight;
	return count;
}

static inline void endpoint_queue(struct endpoint *e, uint32_t row)
{
	e->queue[e->queued++] = row;
}

/* Queues a packet that is laid out in its row and will wait for an answer. */
static inline void endpoint_prepare(struct endpoint *e, uint32_t row)
{
	recovery_prepare(endpoint_path(e, row), endpoint_pending(e, row));
	endpoint_queue(e, row);
}

static inline void endpoint_count_sent(struct endpoint *e, uint32_t row)
{
	e->sent++;
	e->bytes_sent += WIRE_LOWER_HEADER_BYTES + outbox_length(&e->outbox, row);
}

/* Ends a packet's wait (recovery_answered). The longest round trip of a batch becomes the path's sample. */
static inline void endpoint_answered(struct endpoint *e, uint32_t row, int attempt, int64_t now_ns)
{
	struct recovery *path = endpoint_path(e, row);
	int64_t rtt_ns = recovery_answered(path, endpoint_pending(e, row), attempt, now_ns);

	path->batch_rtt_ns = rtt_ns > path->batch_rtt_ns ? rtt_ns : path->batch_rtt_ns;
}

static inline void endpoint_wake_at(struct endpoint *e, int64_t ns)
{
	if (ns < e->deadline_ns)
		e->deadline_ns = ns;
}

/* Ends the round of an endpoint that only waits for answers, if all are here. */
static inline void endpoint_end_if_answered(struct endpoint *e)
{
	e->done = !e->error && !endpoint_in_flight(e);
}

/* Counts and takes one of several datagrams. Returns whether it was awaited. */
static inline uint32_t endpoint_take_one(struct endpoint *e, int64_t now_ns, const struct rows *rows, uint32_t i,
					 take_function *take)
{
	const uint8_t *datagram = rows->first + i * rows->row_bytes;

	e->received++;
	e->bytes_received += WIRE_LOWER_HEADER_BYTES + rows->lengths[i];
	return (uint32_t)take(e, now_ns, datagram, rows->lengths[i], rows->peers[i]);
}

/* Ends a batch. One sample per batch: answers that were received together share their arrival time. */
static inline void endpoint_sample(struct endpoint *e)
{
	for (uint32_t i = 0; i < e->recovery_count; i++) {
		struct recovery *r = &e->recoveries[i];

		if (r->batch_rtt_ns >= 0)
			recovery_sample(r, r->batch_rtt_ns);
		r->batch_rtt_ns = NO_ROUND_TRIP;
	}
}

/* Counts and takes datagrams. Returns how many were awaited. */
static inline uint32_t endpoint_take(struct endpoint *e, int64_t now_ns, const struct rows *rows, take_function *take)
{
	uint32_t awaited = 0;

	for (uint32_t i = 0; i < rows->count; i++)
		awaited += endpoint_take_one(e, now_ns, rows, i, take);
	endpoint_sample(e);
	return awaited;
}

/* The same for a worker, which takes nothing after an error, and whose round is over when all answers are here. */
static inline uint32_t endpoint_take_answers(struct endpoint *e, int64_t now_ns, const struct rows *rows,
					     take_function *take)
{
	uint32_t awaited = endpoint_take(e, now_ns, rows, take);

	endpoint_end_if_answered(e);
	return awaited;
}

/* Begins a round: nothing is queued and nothing waits. */
void endpoint_begin(struct endpoint *e, int64_t now_ns);

/* Sends the queued packets for the first time. */
void endpoint_send_first(struct endpoint *e, int64_t now_ns);

/* Queues the packets of a path that are due to be sent again. */
void endpoint_send_again(struct endpoint *e, uint32_t path, int64_t now_ns);

/* Queues what is due to be sent again, and sets the deadline. Returns 0, or -ETIMEDOUT if no peer has answered for too
 * long. */
int endpoint_check_timers(struct endpoint *e, int64_t now_ns);

/* Empties the queue. Returns how many rows it had: they are to be sent now. */
int endpoint_flush(struct endpoint *e);

/* The poll of a worker that sends only packets that wait for answers. Returns how many rows to send now, or a negative
 * errno: -ETIMEDOUT, or what ended the round before. */
int endpoint_poll(struct endpoint *e, int64_t now_ns);

#endif
