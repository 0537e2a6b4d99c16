/* The inner step of systems/ring/worker.py: one worker's state over a round, packet by packet.
 *
 * Knows neither sockets nor clocks, allocates nothing. Python owns all memory; the structures are mirrored in
 * worker.py, which compares the sizes. Packets of a round are numbered from 0 in the order in which a worker would
 * send them: packet k is chunk k % chunks of step k / chunks. README.md.
 */
#ifndef AGGLAB_RING_H
#define AGGLAB_RING_H

#include <stdint.h>

#include "recovery.h"
#include "ring_wire.h"

/* An outgoing packet, or the last that had this row: packet k has row k % window. */
struct ring_packet {
	struct pending pending;
	uint32_t sequence; /* NOT_LAID_OUT: the row has had no packet in this round yet */
	uint32_t spare;
};

struct ring {
	uint32_t job;
	uint32_t session;
	uint32_t rank;
	uint32_t workers;
	uint32_t lanes;
	uint32_t window;
	uint32_t next;	   /* index of the peer to which data go, and which acknowledges them */
	uint32_t previous; /* index of the peer from which data come */
	uint32_t acknowledge_every;
	uint32_t row_bytes;
	int64_t acknowledge_after_ns;
	struct recovery recovery;

	struct ring_packet *packets; /* `window` elements */
	uint8_t *frames;	     /* `window` rows of data, then the rows of enum rows */
	uint32_t *lengths;
	uint32_t *queue;
	uint8_t *early;	    /* `window` packets of the next round, row_bytes apart */
	uint8_t *early_set; /* which packets of `early` have come */

	/* The round. */
	const uint32_t *values; /* may be the same memory as out */
	uint32_t *out;
	uint64_t *taken; /* a bit for each incoming packet, and one more word */
	uint64_t elements;
	uint32_t is_float;
	uint32_t chunks; /* chunks of a segment */
	uint32_t total;	 /* packets of the round in each direction */
	uint32_t digest;
	uint32_t round;
	uint32_t begun; /* whether a round has begun */
	uint32_t over;
	uint32_t failed;

	uint32_t taken_count;
	uint32_t taken_below;	/* all packets before this one are taken */
	uint32_t highest_taken; /* no packet from this one on is taken */
	uint32_t acknowledged_below;
	uint32_t queued;
	int64_t heard_ns; /* when an awaited packet last came */

	uint32_t owed;		/* packets that are taken but not acknowledged */
	uint32_t owed_at_once;	/* an acknowledgement is due, whatever is owed */
	uint32_t owed_previous; /* an acknowledgement for the round before is due */
	uint32_t echo;		/* the last packet that was taken */
	uint32_t echo_attempt;
	uint32_t previous_total; /* `total` of the round before */
	uint32_t previous_digest;
	uint32_t early_other;	 /* differs from early_digest: so do two workers in the next round */
	int64_t echo_ns;
	int64_t owed_since_ns;

	uint32_t disagreed;
	uint32_t other_digest;
	uint32_t told;		/* bit i: peer i knows of the disagreement */
	uint32_t to_tell;	/* bit i: peer i seems not to know */
	uint32_t tellings_left; /* how often the peers are told before the round fails */
	uint32_t early_digest;
	int64_t tell_ns;

	uint64_t sent;
	uint64_t received;
	uint64_t duplicates;
	uint64_t late;
	uint64_t malformed;
	uint64_t bytes_sent;
	uint64_t bytes_received;
	uint64_t acknowledgements;
	uint64_t acknowledgement_bytes;
	uint64_t early_packets;
};

/* Begins the round whose fields are set. */
void ring_begin(struct ring *r, int64_t now_ns);

/* Takes count datagrams, row_bytes apart, from these peers. Returns how many were awaited. */
uint32_t ring_datagrams(struct ring *r, int64_t now_ns, const uint8_t *rows, uint64_t row_bytes,
			const uint32_t *lengths, const uint32_t *peers, uint32_t count);

/* Fills the queue with the rows to send now and sets the deadline. Returns how many, or, once, -ETIMEDOUT or -EPROTO. */
int ring_poll(struct ring *r, int64_t now_ns);

uint32_t ring_layout(void); /* sizeof(struct ring) << 16 | sizeof(struct ring_packet) */

#endif
