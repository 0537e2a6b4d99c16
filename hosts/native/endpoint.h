/* What a caller in C needs to drive an endpoint whose step per packet is in C. Mirrored in hosts/native_endpoint.py.
 * Rows 0 to pending_rows - 1 hold packets that wait for answers; the other rows are sent once.
 */
#ifndef AGGLAB_ENDPOINT_H
#define AGGLAB_ENDPOINT_H

#include <stdint.h>

#include "io.h"
#include "recovery.h"

struct endpoint {
	void *state;
	/* Takes count datagrams, row_bytes apart. Returns how many were awaited. */
	uint32_t (*take)(void *state, int64_t now_ns, const uint8_t *rows, uint64_t row_bytes, const uint32_t *lengths,
			 uint32_t count);
	/* Fills the queue with rows to send now. Returns how many, or a negative errno when the round has failed. */
	int (*poll)(void *state, int64_t now_ns);
	const uint32_t *queue;
	struct outbox outbox;
	const struct recovery *recovery;
	const uint32_t *disagreed; /* nonzero: the workers disagree, and the round cannot end */
	const uint8_t *pendings;   /* a struct pending for each row, followed by the packet's tag (uint32_t) */
	uint64_t pending_stride;
	uint64_t pending_rows;
	/* Room for one datagram that has arrived. */
	uint8_t *inbox;
	uint64_t inbox_bytes;
};

static inline int endpoint_is_done(const struct endpoint *e)
{
	return !e->recovery->in_flight && !*e->disagreed;
}

#endif
