/* The timers and the queue of an endpoint (see endpoint.h). */
#include "endpoint.h"

#include <errno.h>

void endpoint_begin(struct endpoint *e, int64_t now_ns)
{
	e->done = 0;
	e->chunks_done = 0;
	e->queued = 0;
	for (uint32_t i = 0; i < e->recovery_count; i++)
		recovery_begin(&e->recoveries[i], now_ns);
}

void endpoint_send_first(struct endpoint *e, int64_t now_ns)
{
	for (uint32_t i = 0; i < e->queued; i++) {
		recovery_send(endpoint_path(e, e->queue[i]), endpoint_pending(e, e->queue[i]), now_ns);
		endpoint_count_sent(e, e->queue[i]);
	}
}

void endpoint_send_again(struct endpoint *e, uint32_t path, int64_t now_ns)
{
	uint32_t *again = e->queue + e->queued, paths = e->path_count;
	uint32_t count = recovery_repeat(e->paths[path], endpoint_pending(e, path), paths * e->pending_stride,
					 e->pending_rows / paths, now_ns, again);

	for (uint32_t i = 0; i < count; i++) {
		again[i] = again[i] * paths + path;
		endpoint_row(e, again[i])[e->attempt_offset] = (uint8_t)endpoint_pending(e, again[i])->attempt;
		endpoint_count_sent(e, again[i]);
	}
	e->queued += count;
}

int endpoint_check_timers(struct endpoint *e, int64_t now_ns)
{
	int64_t since_ns = recovery_latest_progress_ns(e->recoveries, e->recovery_count);

	e->deadline_ns = INT64_MAX;
	for (uint32_t path = 0; path < e->path_count; path++) {
		struct recovery *r = e->paths[path];

		if (!r->in_flight)
			continue;
		if (recovery_gives_up(r, since_ns, now_ns))
			return -ETIMEDOUT;
		endpoint_send_again(e, path, now_ns);
		endpoint_wake_at(e, r->deadline_ns);
	}
	return 0;
}

int endpoint_flush(struct endpoint *e)
{
	int count = (int)e->queued;

	e->queued = 0;
	return count;
}

int endpoint_poll(struct endpoint *e, int64_t now_ns)
{
	int failed;

	if (e->error)
		return -(int)e->error;
	endpoint_send_first(e, now_ns);
	failed = endpoint_check_timers(e, now_ns);
	return failed ? failed : endpoint_flush(e);
}
