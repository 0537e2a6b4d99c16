/* The inner steps of systems/pooling/: a worker's state, and a server's, packet by packet.
 *
 * They know neither sockets nor clocks, and allocate nothing. Python owns all memory; the structures are mirrored in
 * worker.py and server.py, which compare the sizes. README.md.
 */
#ifndef AGGLAB_POOLING_H
#define AGGLAB_POOLING_H

#include <stdint.h>

#include "aimd.h"
#include "pooling_wire.h"
#include "recovery.h"

/* What a job's worker and its server both know, and both count. */
struct pooling_common {
	uint32_t job;
	uint32_t session;
	uint32_t workers;
	uint32_t lanes;
	uint32_t window; /* number of positions: a chunk's position is its tag modulo this */
	uint32_t row_bytes;
	uint32_t queued;
	uint32_t disagreed;
	uint32_t other_digest;
	uint32_t spare;
	uint8_t *frames; /* rows of the outbox, row_bytes apart */
	uint32_t *lengths;
	uint32_t *queue;

	uint64_t sent;
	uint64_t received;
	uint64_t duplicates;
	uint64_t late;
	uint64_t malformed;
	uint64_t bytes_sent;
	uint64_t bytes_received;
};

/* The contribution that a position has in flight, or the last that was answered. Its row is the position. */
struct pooling_position {
	struct pending pending;
	uint32_t chunk;
	uint32_t floats; /* whether the chunk is sent as floats, because it does not fit the scale */
};

struct pooling_worker {
	struct pooling_common common;
	struct recovery recovery;
	struct pooling_position *positions;
	const uint16_t *slots; /* switch slots: a chunk with tag t uses slots[t % slot_count] */
	const uint32_t *values; /* may be the same memory as out */
	uint32_t *out;
	uint32_t *sums; /* the integers that were summed, or NULL */
	uint64_t elements;
	uint32_t is_float;
	uint32_t chunks;
	uint32_t chunks_done;
	uint32_t first_tag; /* tag of the round's first chunk */
	uint32_t oldest;    /* the first chunk that has no result */
	uint32_t next;	    /* the first chunk that has not been sent */
	uint32_t digest;
	uint32_t begun;
	int32_t scale_log2; /* integers are floats times 2 to this */
	uint32_t value_bits;
	uint32_t priority;
	uint32_t slot_count;
	struct aimd aimd;
	uint64_t marked;    /* results that were marked because a link was busy */
	uint64_t overflown; /* chunks that were sent as floats */
	uint64_t again_answered; /* the latest repetition known to be answered */
};

enum pooling_phase { POOLING_EMPTY, POOLING_GATHERS, POOLING_GATHERS_FLOATS, POOLING_COMPLETE };

/* A position of a server: the chunk that is summed there, or was summed last, and the chunk before it. Outbox row 2 *
 * position + generation holds the sum so far, and later the result; row 2 * position + !generation holds the previous
 * result. */
struct pooling_cell {
	uint32_t tag;
	uint32_t previous_tag;
	uint32_t digest;
	uint32_t members; /* the workers whose values are in the sum, or, for floats, have come */
	uint32_t parts;	  /* how many packets the sum was made of */
	uint8_t phase;
	uint8_t kind;
	uint8_t flags; /* OVERFLOW, CONGESTED */
	uint8_t generation;
	uint8_t previous_used;
	uint8_t spare[3];
};

struct pooling_server {
	struct pooling_common common;
	struct pooling_cell *cells;
	uint32_t *asked; /* for each row, the workers to which it is to be sent */
	uint8_t *state;	 /* for each row, ON_QUEUE and AGAIN */
	float *floats;	 /* the values of each position and worker; NULL for a job of integers */
	uint32_t everybody;
	uint32_t disagreed_tag;
	uint32_t disagreed_digest;
	uint32_t begun;
	uint64_t summed_ever;
	uint64_t whole; /* chunks of summed_ever that a single packet brought */
	uint64_t parts; /* packets that were added to sums */
	uint64_t overlapping; /* packets that could not be added */
	uint64_t answered_again;
};

/* Begins the round whose fields are set. */
void pooling_worker_begin(struct pooling_worker *w, int64_t now_ns);

/* Takes count datagrams, row_bytes apart. Returns how many were awaited. */
uint32_t pooling_worker_datagrams(struct pooling_worker *w, int64_t now_ns, const uint8_t *rows, uint64_t row_bytes,
				  const uint32_t *lengths, uint32_t count);
uint32_t pooling_server_datagrams(struct pooling_server *s, const uint8_t *rows, uint64_t row_bytes,
				  const uint32_t *lengths, uint32_t count);

/* Fills the queue with the rows to send now. Returns how many; a worker's may be -ETIMEDOUT or -EPROTO. */
int pooling_worker_poll(struct pooling_worker *w, int64_t now_ns);
int pooling_server_poll(struct pooling_server *s);

/* Gives a window one answer, for the test that compares it with hosts/aimd.py. */
void pooling_aimd(struct aimd *a, int marked, int lost);

uint32_t pooling_worker_layout(void); /* sizeof(struct pooling_worker) << 16 | sizeof(struct pooling_position) */
uint32_t pooling_server_layout(void); /* sizeof(struct pooling_server) << 16 | sizeof(struct pooling_cell) */

#endif
