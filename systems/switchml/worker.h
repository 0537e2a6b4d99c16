/* The inner step of systems/switchml/worker.py: one worker's state over a round, packet by packet.
 *
 * Knows neither sockets nor clocks, allocates nothing. Python owns all memory; the structures below are
 * mirrored in systems/switchml/worker.py, which compares the sizes when the library is loaded.
 */
#ifndef AGGLAB_WORKER_H
#define AGGLAB_WORKER_H

#include <stdint.h>

#include "narrow.h"
#include "pieces.h"
#include "presence.h"
#include "quantise.h"
#include "recovery.h"
#include "shapes.h"
#include "unawaited.h"
#include "wire.h"

/* The packet a slot has in flight, or, when nothing is, the last one that was answered. */
struct slot {
	struct pending pending;
	uint32_t tag;
	uint32_t chunk;
	uint32_t length; /* length of the datagram in frames */
	uint8_t kind;
};

struct worker {
	uint32_t job;
	uint32_t lanes;
	uint32_t window;
	uint32_t value_bits;
	uint32_t version; /* version of the packets */
	uint32_t header_bytes;
	struct recovery recovery;
	struct fixed_point fixed_point;

	struct slot *slots;
	uint8_t *frames; /* one datagram per slot, frame_stride apart, kept until its result is here */
	uint32_t *queue; /* slots to send, in order */
	uint64_t frame_stride;

	const void *values; /* float, int32_t or floats of 16 bits; may be the same memory as out */
	void *out;
	int32_t *sums;      /* the integer sums, or NULL */
	const struct pieces *pieces; /* or NULL; takes the place of the three arrays */
	uint8_t *exponents; /* the agreed exponent of each chunk */
	uint64_t elements;
	struct shapes shapes; /* the shapes that workers reduce in this round */
	uint32_t kind; /* kind of the round's contributions: any but OPENING */
	uint32_t workers;
	uint32_t chunks;
	uint32_t chunks_done;
	uint32_t queued;

	uint64_t sent;
	uint64_t received;
	struct unawaited unawaited;
	uint64_t bytes_sent;
	uint64_t bytes_received;
	struct presence presence;
};

/* Queues the first packet of every slot that the round uses. Slot 0 is always used, so that all workers meet there,
 * whatever they reduce. The caller has set the round's fields. */
void worker_begin(struct worker *w, int64_t now_ns);

/* Takes count datagrams, row_bytes apart. Returns how many were awaited results. */
uint32_t worker_results(struct worker *w, int64_t now_ns, const uint8_t *rows, uint64_t row_bytes,
			const uint32_t *lengths, uint32_t count);

/* Fills the queue with the slots to send now, new packets first, and sets deadline_ns. Returns how many, or
 * -ETIMEDOUT when no awaited result came for give_up_ns, -EPROTO when the workers disagreed about the round's shape. */
int worker_poll(struct worker *w, int64_t now_ns);

uint32_t worker_layout(void); /* sizeof(struct worker) << 16 | sizeof(struct slot) */

#endif
