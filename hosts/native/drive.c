/* Drives an endpoint through a round (see drive.h). */
#define _GNU_SOURCE
#include "drive.h"

#include <time.h>

static int64_t monotonic_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

static int failed(struct drive *d, enum drive_step step, int error)
{
	d->step = step;
	return error;
}

/* Sends what is to be sent at now_ns. */
static int send_queued(struct drive *d, int64_t now_ns)
{
	const struct endpoint *e = &d->endpoint;
	int count = e->poll(e->state, now_ns), error;

	if (count < 0)
		return failed(d, POLLING, count);
	error = io_send(d->io, &e->outbox, e->queue, (uint32_t)count);
	return error ? failed(d, SENDING, error) : 0;
}

/* Waits for datagrams until end_ns at the latest. Returns how many buffers or datagrams came. */
static int receive(struct drive *d, int64_t end_ns)
{
	int64_t wait_ns = end_ns - monotonic_ns();
	int64_t gather_ns = coalescing_wait_ns(d->coalescing, d->endpoint.recovery->in_flight);
	int count;

	wait_ns = wait_ns > 0 ? wait_ns : 0;
	count = io_receive_rows(d->io, gather_ns < wait_ns ? gather_ns : wait_ns, wait_ns);
	return count < 0 ? failed(d, RECEIVING, count) : count;
}

static void take_received(struct drive *d, int64_t now_ns)
{
	const struct endpoint *e = &d->endpoint;
	uint32_t awaited = 0;
	struct rows rows;

	while (io_next_rows(d->io, &rows))
		awaited += e->take(e->state, now_ns, rows.first, rows.row_bytes, rows.lengths, rows.count);
	coalescing_arrived(d->coalescing, now_ns, awaited);
}

int drive_round(struct drive *d, int64_t wait_end_ns, int64_t return_ns)
{
	const struct endpoint *e = &d->endpoint;
	int64_t now_ns = monotonic_ns(), deadline_ns;

	do {
		int result = send_queued(d, now_ns);

		if (result || endpoint_is_done(e))
			return result;
		deadline_ns = e->recovery->deadline_ns;
		result = receive(d, deadline_ns < wait_end_ns ? deadline_ns : wait_end_ns);
		if (result <= 0)
			return result;
		now_ns = monotonic_ns();
		take_received(d, now_ns);
	} while (now_ns < return_ns && !endpoint_is_done(e));
	return 0;
}
