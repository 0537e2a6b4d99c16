/* The inner steps of systems/ps/agents.py: a worker's state, and a server's, packet by packet.
 *
 * They know neither sockets nor clocks, and allocate nothing. Python owns all memory; the structures are mirrored in
 * agents.py, which compares the sizes. README.md.
 */
#ifndef AGGLAB_PS_H
#define AGGLAB_PS_H

#include <stdint.h>

#include "ps_wire.h"
#include "recovery.h"

/* What a job's worker and its servers both know, and both count. */
struct ps_common {
	uint32_t job;
	uint32_t session;
	uint32_t workers;
	uint32_t servers;
	uint32_t lanes;
	uint32_t window; /* chunks in flight to all servers together: a multiple of `servers` */
	uint32_t row_bytes;
	uint32_t queued;
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

/* The push that a slot has in flight, or the last that was answered. Chunk c has slot c % window. */
struct ps_push {
	struct pending pending;
	uint32_t chunk;
	uint32_t spare;
};

struct ps_worker {
	struct ps_common common;
	struct recovery *recoveries; /* one for each server: an answer of one overtakes no answer of another */
	int64_t *rtts_ns;            /* for each server, the round trip of the results that came together; -1: none */
	struct ps_push *pushes;
	const uint32_t *values; /* may be the same memory as out */
	uint32_t *out;
	uint64_t elements;
	uint32_t is_float;
	uint32_t chunks;
	uint32_t chunks_done;
	uint32_t digest;
	uint32_t round;
	uint32_t begun;
	uint32_t disagreed;
	uint32_t other_digest;
	int64_t deadline_ns;
};

/* A slot of a server: the chunk that is summed in it, or was summed last, and the chunk before it. Outbox row `workers
 * * slot + rank` holds this worker's values while its bit in `present` is set, and otherwise the last result. */
struct ps_slot {
	uint32_t chunk;
	uint32_t previous_chunk;
	uint32_t missing; /* how many workers' values have not come; 0: the sum is complete */
	uint16_t round;
	uint16_t previous_round;
	uint8_t used;	      /* whether `chunk` is set */
	uint8_t previous_used; /* whether `previous_chunk` is set */
	uint8_t spare[2];
};

struct ps_server {
	struct ps_common common;
	uint32_t index; /* the server's index among the servers */
	uint32_t slots; /* window / servers */
	struct ps_slot *slot;
	uint64_t *present; /* for each slot, bitmap_words words with a bit for each worker */
	uint8_t *asked;	   /* for each row, WANTED, ON_QUEUE and AGAIN */
	uint32_t *sum;	   /* room for a chunk's sum */
	uint32_t bitmap_words;

	uint32_t begun;
	uint32_t round;
	uint32_t is_float;
	uint32_t digest;
	uint32_t chunks; /* chunks of the round at all servers */
	uint32_t summed; /* chunks of the round that are complete */
	uint32_t disagreed;
	uint32_t other_digest;
	uint32_t own_digest; /* digest of the shape that the server was started with, not of a round */
	uint64_t summed_ever;
	uint64_t answered_again;
};

/* Begins the round whose fields are set. */
void ps_worker_begin(struct ps_worker *w, int64_t now_ns);

/* Takes count datagrams, row_bytes apart, from these peers. Returns how many were awaited. */
uint32_t ps_worker_datagrams(struct ps_worker *w, int64_t now_ns, const uint8_t *rows, uint64_t row_bytes,
			     const uint32_t *lengths, const uint32_t *peers, uint32_t count);
uint32_t ps_server_datagrams(struct ps_server *s, const uint8_t *rows, uint64_t row_bytes, const uint32_t *lengths,
			     const uint32_t *peers, uint32_t count);

/* Fills the queue with the rows to send now. Returns how many; a worker's may be -ETIMEDOUT or -EPROTO. */
int ps_worker_poll(struct ps_worker *w, int64_t now_ns);
int ps_server_poll(struct ps_server *s);

uint32_t ps_worker_layout(void); /* sizeof(struct ps_worker) << 16 | sizeof(struct ps_push) */
uint32_t ps_server_layout(void); /* sizeof(struct ps_server) << 16 | sizeof(struct ps_slot) */

#endif
