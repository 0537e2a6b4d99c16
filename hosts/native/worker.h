/* The inner step of hosts/worker.py: one worker's state over a round, packet by packet.
 *
 * Knows neither sockets nor clocks, allocates nothing. Python owns all memory; the structures below are
 * mirrored in hosts/worker.py, which compares the sizes when the library is loaded.
 */
#ifndef AGGLAB_WORKER_H
#define AGGLAB_WORKER_H

#include <stdint.h>

#include "wire.h"

enum { ANSWERED, QUEUED, SENT }; /* slot.waiting */

/* The packet a slot has in flight, or, when nothing is, the last one that was answered. */
struct slot {
	int64_t sent_ns;       /* last transmission */
	int64_t first_sent_ns; /* first transmission */
	uint64_t order;        /* position of the last transmission among all */
	uint64_t first_order;  /* of the first transmission */
	uint32_t tag;
	uint32_t chunk;
	uint8_t kind;
	uint8_t waiting; /* for a result; as long as it is QUEUED there cannot be one */
	uint16_t attempt; /* how often it was sent again, at most 255: as in its datagram */
	uint32_t length; /* of the datagram in frames */
};

struct worker {
	uint32_t job;
	uint32_t lanes;
	uint32_t window;
	uint32_t value_bits;
	int64_t min_rto_ns;
	int64_t min_gap_ns;
	int64_t max_rto_ns;
	int64_t slack_ns; /* least allowance above the smoothed round trip: results are gathered */
	int64_t give_up_ns;

	struct slot *slots;
	uint8_t *frames; /* one datagram a slot, frame_stride apart, kept until its result is here */
	uint32_t *queue; /* slots to send, in order */
	uint64_t frame_stride;

	const void *values; /* float or int32_t; may be the same memory as out */
	void *out;
	int32_t *sums;      /* the integer sums, or NULL */
	uint8_t *exponents; /* agreed, one a chunk */
	uint64_t elements;
	uint8_t shape[WIRE_SHAPE_BYTES];     /* the round's, as on the wire */
	uint8_t smallest[WIRE_SHAPE_BYTES];  /* of all workers', where they disagreed */
	uint8_t largest[WIRE_SHAPE_BYTES];
	uint32_t disagreed;
	uint32_t kind; /* of the round's values: INT32 or SCALED */
	uint32_t chunks;
	uint32_t chunks_done;
	uint32_t in_flight;
	uint32_t queued;

	uint32_t sampled; /* a round trip has been measured */
	uint32_t lossy;   /* results have left gaps */
	uint32_t backoff; /* the timeout of silence is doubled so many times */
	int64_t srtt_ns;
	int64_t rttvar_ns;
	int64_t rto_ns;
	int64_t late_ns;     /* how much later than usual results come that were overtaken without a loss */
	int64_t progress_ns; /* when the last awaited result came */
	int64_t probe_ns;    /* when packets were last sent again after a silence */
	int64_t deadline_ns; /* when worker_poll has something to do even without a result */
	uint64_t next_order;
	uint64_t answered_order; /* the latest transmission known to be answered */

	uint64_t sent;
	uint64_t received;
	uint64_t retransmitted;
	uint64_t duplicates;
	uint64_t late;
	uint64_t malformed;
	uint64_t timeouts;
	uint64_t bytes_sent;
	uint64_t bytes_received;
};

/* Puts the first packet of every slot the round uses on the queue, of slot 0 at least: all workers meet there, whatever
 * they reduce. The round's fields are set. */
void worker_begin(struct worker *w, int64_t now_ns);

/* Takes count datagrams, row_bytes apart. Returns how many were awaited results. */
uint32_t worker_results(struct worker *w, int64_t now_ns, const uint8_t *rows, uint64_t row_bytes,
			const uint32_t *lengths, uint32_t count);

/* Fills the queue with the slots to send now, new packets first, and sets deadline_ns. Returns how many, or
 * -ETIMEDOUT when no awaited result came for give_up_ns, -EPROTO when the workers disagreed about the round's shape. */
int worker_poll(struct worker *w, int64_t now_ns);

uint32_t worker_layout(void); /* sizeof(struct worker) << 16 | sizeof(struct slot) */

#endif
