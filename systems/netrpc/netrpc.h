/* The inner step of caller.py: one caller's window of calls to one peer, packet by packet (README.md).
 *
 * Knows neither sockets nor clocks, allocates nothing. Python owns all memory; the structures below are mirrored in
 * caller.py, which compares the sizes when the library is loaded.
 */
#ifndef AGGLAB_NETRPC_H
#define AGGLAB_NETRPC_H

#include <stdint.h>

#include "netrpc_wire.h"
#include "recovery.h"
#include "unawaited.h"

/* A position of the window: the call it has in flight, or, when none is, the last one that was answered. */
struct netrpc_call {
	struct pending pending;
	uint32_t sequence;
	uint32_t length; /* length of the datagram in frames */
	uint32_t chunk;  /* the chunk of the stream that the call is about */
	uint32_t epoch;  /* epoch in the last answer */
	uint16_t method;
	uint16_t count; /* count in the last answer */
	uint8_t kind;
	uint8_t answer_kind; /* kind of the expected answer */
	uint8_t word;	     /* word in the last answer */
	uint8_t streams;     /* whether the call belongs to a stream: C takes the answer and makes the next call */
};

struct netrpc_caller {
	uint32_t job;
	uint32_t peer; /* index among the endpoint's peers */
	uint32_t lanes;
	uint32_t window;
	uint32_t first_row; /* the caller's first row in the endpoint's outbox */
	uint32_t value_bits;
	struct recovery recovery;

	struct netrpc_call *calls;
	uint8_t *frames;  /* one datagram per call, frame_stride apart, kept until its answer is here */
	uint8_t *answers; /* the last answers without headers, frame_stride apart; not kept for a stream's calls */
	uint32_t *queue;  /* rows to send, in order */
	uint64_t frame_stride;

	/* The stream under way: an array whose chunks are reduced one by one. */
	const void *values; /* float or int32_t; may be the same memory as out */
	void *out;
	int32_t *sums;	    /* the integer sums, or NULL */
	uint8_t *exponents; /* the agreed exponent of each chunk */
	uint64_t elements;
	uint32_t is_float;
	uint32_t chunks;
	uint32_t chunks_done;
	uint32_t width; /* how many of the stream's calls are in flight at once */
	uint16_t agree; /* numbers of the stream's two methods */
	uint16_t reduce;

	uint32_t epoch;
	uint32_t queued;

	uint64_t sent;
	uint64_t received;
	struct unawaited unawaited;
	uint64_t bytes_sent;
	uint64_t bytes_received;
};

/* The call's method, kinds and word (of the pending header) are set, and body_bytes bytes of its argument are in its
 * frame: puts it on the queue. */
void netrpc_post(struct netrpc_caller *c, uint32_t position, uint8_t word, uint32_t body_bytes);

/* Makes a call that is not one of a stream's, in the same way. body: body_bytes bytes, which are copied. */
void netrpc_call(struct netrpc_caller *c, uint32_t position, uint16_t method, uint8_t kind, uint8_t answer_kind,
		 uint8_t word, const uint8_t *body, uint32_t body_bytes);

/* Begins the stream whose fields are set, at the positions from 0 on, none of which is in use. */
void netrpc_stream(struct netrpc_caller *c);

/* Takes those of count datagrams that the peer sent, row_bytes apart. Returns how many were awaited. */
uint32_t netrpc_answers(struct netrpc_caller *c, int64_t now_ns, const uint8_t *rows, uint64_t row_bytes,
			const uint32_t *lengths, const uint32_t *peers, uint32_t count);

/* Fills the queue with the rows to send now, new calls first, and sets deadline_ns. since_ns: when the endpoint last
 * heard anything that it awaited. Returns how many, or -ETIMEDOUT if that is give_up_ns ago. */
int netrpc_poll(struct netrpc_caller *c, int64_t now_ns, int64_t since_ns);

uint32_t netrpc_layout(void); /* sizeof(struct netrpc_caller) << 16 | sizeof(struct netrpc_call) */

#endif
