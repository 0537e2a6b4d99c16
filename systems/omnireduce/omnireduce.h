/* The inner step of worker.py: one worker's state over a round, packet by packet (README.md).
 *
 * Knows neither sockets nor clocks, allocates nothing. Python owns all memory; the structures below are mirrored in
 * worker.py, which compares the sizes when the library is loaded.
 */
#ifndef AGGLAB_OMNIREDUCE_H
#define AGGLAB_OMNIREDUCE_H

#include <stdint.h>

#include "omnireduce_wire.h"
#include "recovery.h"
#include "shapes.h"
#include "unawaited.h"

#define NO_BLOCK UINT32_MAX

/* A column's slot: the packet it has in flight, or, when nothing is, the last one that was answered. */
struct omnireduce_column {
	struct pending pending;
	uint32_t tag;
	uint32_t block;   /* the block that the packet is about; for an OPENING the column's first block */
	uint32_t next;    /* this worker's next block after it that has a value, or NO_BLOCK */
	uint8_t kind;     /* the packet's kind without the bit BARE */
	uint8_t exponent; /* exponent of this worker's values in block `next` */
	uint8_t has_values; /* whether the packet carries values */
};

struct omnireduce_worker {
	uint32_t job;
	uint32_t lanes;
	uint32_t window;
	uint32_t value_bits;
	struct recovery recovery;

	struct omnireduce_column *columns;
	uint8_t *frames; /* rows, frame_stride apart: each column's own datagram, kept until its result is here; then those
			  * of several columns, kept until the next poll */
	uint32_t *lengths; /* length of the datagram in each row */
	uint32_t *queue;   /* rows to send, in order */
	uint32_t *ready;   /* columns whose packets are laid out but not sent yet, in order */
	uint64_t frame_stride;
	int64_t held_since_ns; /* since when the first column in `ready` waits for others to share its datagram */
	uint32_t ready_count;
	uint32_t opening_entries; /* how many entries may follow an OPENING */
	uint32_t bare_entries;    /* how many entries may follow headers alone */
	uint32_t values_entries;  /* how many entries may follow values */

	const void *values; /* float or int32_t; may be the same memory as out */
	void *out;
	int32_t *sums;      /* the integer sums, or NULL */
	uint8_t *exponents; /* the agreed exponent of each block; 0 if no worker has values for it */
	uint64_t elements;
	struct shapes shapes; /* the shapes that workers reduce in this round */
	uint32_t kind; /* kind of the round's values: INT32 or SCALED */
	uint32_t blocks;
	uint32_t blocks_done;
	uint32_t queued;

	uint64_t sent;
	uint64_t received;
	struct unawaited unawaited;
	uint64_t bytes_sent;
	uint64_t bytes_received;
	uint64_t blocks_sent;    /* blocks whose values this worker sent, each counted once */
	uint64_t blocks_bare;    /* blocks for which it sent headers alone */
	uint64_t blocks_skipped; /* blocks for which no worker sent anything */
	uint64_t blocks_fused;   /* of blocks_bare, those that were entries behind another packet */
	uint64_t openings_fused;
};

/* Queues the OPENING of every column that the round uses; column 0 is always used. The caller has set the round's
 * fields. */
void omnireduce_begin(struct omnireduce_worker *w, int64_t now_ns);

/* Takes count datagrams, row_bytes apart. Returns how many were awaited results. */
uint32_t omnireduce_results(struct omnireduce_worker *w, int64_t now_ns, const uint8_t *rows, uint64_t row_bytes,
			    const uint32_t *lengths, uint32_t count);

/* Fills the queue with the rows to send now, new packets first, and sets deadline_ns. Returns how many, or
 * -ETIMEDOUT when no awaited result came for give_up_ns, -EPROTO when the workers disagreed about the round's shape. */
int omnireduce_poll(struct omnireduce_worker *w, int64_t now_ns);

uint32_t omnireduce_layout(void); /* sizeof(struct omnireduce_worker) << 16 | sizeof(struct omnireduce_column) */

#endif
