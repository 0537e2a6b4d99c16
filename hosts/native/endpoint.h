/* What a caller in C needs to drive an endpoint whose step per packet is in C. Mirrored in hosts/native_endpoint.py.
 * Rows 0 to pending_rows - 1 hold packets that wait for answers; the other rows are sent once.
 */
#ifndef AGGLAB_ENDPOINT_H
#define AGGLAB_ENDPOINT_H

#include <stdint.h>

#include "io.h"
#include "recovery.h"

#define ENDPOINT_AHEAD 3 /* datagrams that an endpoint may take in one window of virtual time */

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
	/* The length of the shortest datagram that the endpoint may send before it has taken more than ENDPOINT_AHEAD
	 * datagrams, if switches answer a datagram with none that is shorter. NULL: not known. */
	const uint32_t *shortest_bytes;
	/* Room for one datagram that has arrived. */
	uint8_t *inbox;
	uint64_t inbox_bytes;
};

static inline int endpoint_is_done(const struct endpoint *e)
{
	return !e->recovery->in_flight && !*e->disagreed;
}

#endif
