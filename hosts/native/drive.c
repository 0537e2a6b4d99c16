/* Drives an endpoint through a round over one socket, without Python between its packets. */
#define _GNU_SOURCE
#include <time.h>

#include "coalescing.h"
#include "endpoint.h"
#include "io.h"

static int64_t monotonic_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

static int failed(struct drive *d, uint32_t step, int error)
{
	d->step = step;
	return error;
}

/* Sends what is to be sent at now_ns. */
static int send_queued(struct drive *d, int64_t now_ns)
{
	struct endpoint *e = d->endpoint;
	int count = e->poll(e, now_ns), error;

	if (count < 0)
		return failed(d, POLLING, count);
	error = io_send(d->io, &e->outbox, e->queue, (uint32_t)count);
	return error ? failed(d, SENDING, error) : 0;
}

/* Waits for datagrams until end_ns at the latest. Returns how many buffers or datagrams came. */
static int receive(struct drive *d, int64_t end_ns)
{
	int64_t wait_ns = end_ns - monotonic_ns();
	int64_t gather_ns = coalescing_wait_ns(d->coalescing, endpoint_in_flight(d->endpoint));
	int count;

	wait_ns = wait_ns > 0 ? wait_ns : 0;
	count = io_receive_rows(d->io, gather_ns < wait_ns ? gather_ns : wait_ns, wait_ns);
	return count < 0 ? failed(d, RECEIVING, count) : count;
}

static void take_received(struct drive *d, int64_t now_ns)
{
	struct endpoint *e = d->endpoint;
	uint32_t awaited = 0;
	struct rows rows;

	while (io_next_rows(d->io, &rows))
		awaited += e->take(e, now_ns, &rows);
	coalescing_arrived(d->coalescing, now_ns, awaited);
}

/* Sends, waits and takes datagrams until the round is done, until a wait brings nothing (a signal may have ended it),
 * or, after datagrams came, until return_ns or until Python has to act. No wait is longer than until wait_end_ns. Returns 0 or a negative errno;
 * then `step` says where the error occurred. */
int drive_round(struct drive *d, int64_t wait_end_ns, int64_t return_ns)
{
	const struct endpoint *e = d->endpoint;
	int64_t now_ns = monotonic_ns();

	do {
		int result = send_queued(d, now_ns);

		if (result || e->done)
			return result;
		result = receive(d, e->deadline_ns < wait_end_ns ? e->deadline_ns : wait_end_ns);
		if (result <= 0)
			return result;
		now_ns = monotonic_ns();
		take_received(d, now_ns);
	} while (now_ns < return_ns && !e->done && !e->needs_python);
	return 0;
}
