/* One NetRPC caller, packet by packet. Clauses are those of README.md. The caller's state is declared in state.py. */
#include <endian.h>
#include <errno.h>
#include <string.h>

#include "endpoint.h"
#include "netrpc_wire.h"
#include "quantise.h"
#include "state.h"
#include "unawaited.h"

#define LOSSY_RTO_NS 1000000
#define BYTES_PER_WEIGHT 64

static uint64_t first_element(const struct netrpc_caller *c, uint32_t chunk)
{
	return (uint64_t)chunk * c->lanes;
}

static uint64_t chunk_elements(const struct netrpc_caller *c, uint32_t chunk)
{
	uint64_t left = c->elements - first_element(c, chunk);

	return left < c->lanes ? left : c->lanes;
}

static uint8_t own_exponent(const struct netrpc_caller *c, uint64_t chunk)
{
	if (!c->is_float || chunk >= c->endpoint.chunks)
		return 0;
	return largest_exponent((const float *)c->values + first_element(c, (uint32_t)chunk),
				chunk_elements(c, (uint32_t)chunk));
}

static uint8_t *frame_of(const struct netrpc_caller *c, uint32_t position)
{
	return endpoint_row(&c->endpoint, position);
}

static uint32_t body_bytes_of(const struct netrpc_caller *c, uint8_t kind)
{
	switch (kind) {
	case NETRPC_ARRAY:
		return 4 * c->lanes;
	case NETRPC_MAP:
		return NETRPC_MAP_BYTES;
	case NETRPC_KEYS:
		return NETRPC_KEYS_BYTES;
	default:
		return 0;
	}
}

/* Calls differ in length, and so do their answers: a round trip says little about a call that loads links more. */
static uint8_t weight_of(const struct netrpc_caller *c, const struct netrpc_call *call)
{
	uint32_t headers = 2 * (WIRE_LOWER_HEADER_BYTES + NETRPC_HEADER_BYTES);
	uint32_t bodies = call->length - NETRPC_HEADER_BYTES + body_bytes_of(c, call->answer_kind);
	uint32_t weight = (headers + bodies) / BYTES_PER_WEIGHT;

	return (uint8_t)(weight < UINT8_MAX ? weight : UINT8_MAX);
}

/* The call's method and kinds are set, and body_bytes bytes of its argument are in its frame: puts it on the queue. */
static void post(struct netrpc_caller *c, uint32_t position, uint8_t word, uint32_t body_bytes)
{
	struct netrpc_call *call = &c->calls[position];
	struct netrpc_header header = {
		.version = NETRPC_VERSION,
		.kind = call->kind,
		.job = htobe16((uint16_t)c->job),
		.slot = htobe16((uint16_t)position),
		.exponent = word,
		.tag = htobe32(++call->sequence),
		.epoch = htobe32(c->epoch),
		.method = htobe16(call->method),
	};

	memcpy(frame_of(c, position), &header, sizeof(header));
	call->length = NETRPC_HEADER_BYTES + body_bytes;
	call->pending.weight = weight_of(c, call);
	endpoint_prepare(&c->endpoint, position);
}

/* Makes a call that is not one of a stream's. body: body_bytes bytes, which are copied. */
void netrpc_call(struct netrpc_caller *c, uint32_t position, uint16_t method, uint8_t kind, uint8_t answer_kind,
		 uint8_t word, const uint8_t *body, uint32_t body_bytes)
{
	struct netrpc_call *call = &c->calls[position];

	call->method = method;
	call->kind = kind;
	call->answer_kind = answer_kind;
	call->streams = 0;
	memcpy(frame_of(c, position) + NETRPC_HEADER_BYTES, body, body_bytes);
	post(c, position, word, body_bytes);
}

static void put_values(const struct netrpc_caller *c, uint32_t chunk, uint32_t *payload)
{
	uint64_t first = first_element(c, chunk), count = chunk_elements(c, chunk);

	if (c->is_float) {
		quantise((const float *)c->values + first, count, c->exponents[chunk], c->value_bits, payload, 1);
	} else {
		copy_in_wire_order((const uint32_t *)c->values + first, count, payload);
	}
	memset(payload + count, 0, (c->lanes - count) * sizeof(*payload));
}

/* "The agreed exponent of a chunk travels one window ahead, as the word of the call that is answered before it." */
static void post_agree(struct netrpc_caller *c, uint32_t position, uint32_t chunk)
{
	struct netrpc_call *call = &c->calls[position];

	call->method = c->agree;
	call->kind = call->answer_kind = NETRPC_NOTHING;
	call->chunk = chunk;
	call->streams = 1;
	post(c, position, own_exponent(c, chunk), 0);
}

static void post_reduce(struct netrpc_caller *c, uint32_t position, uint32_t chunk)
{
	struct netrpc_call *call = &c->calls[position];

	call->method = c->reduce;
	call->kind = call->answer_kind = NETRPC_ARRAY;
	call->chunk = chunk;
	call->streams = 1;
	put_values(c, chunk, (uint32_t *)(frame_of(c, position) + NETRPC_HEADER_BYTES));
	post(c, position, own_exponent(c, (uint64_t)chunk + c->width), 4 * c->lanes);
}

/* Begins the stream whose fields are set, at the positions from 0 on, none of which is in use. */
void netrpc_stream(struct netrpc_caller *c)
{
	c->endpoint.chunks_done = 0;
	for (uint32_t position = 0; position < c->width; position++) {
		if (c->is_float)
			post_agree(c, position, position);
		else
			post_reduce(c, position, position);
	}
}

static void take_values(struct netrpc_caller *c, uint32_t chunk, const uint8_t *body)
{
	const uint32_t *restrict payload = (const uint32_t *)body;
	uint64_t first = first_element(c, chunk), count = chunk_elements(c, chunk);

	if (!c->is_float) {
		copy_in_wire_order(payload, count, (uint32_t *)c->out + first);
	} else if (c->exponents[chunk] != EXPONENT_NOT_FINITE) {
		/* Without a usable exponent, out keeps its contents (which may be the input): the caller is told about
		 * them. */
		dequantise(payload, count, c->exponents[chunk], c->value_bits, (float *)c->out + first, 1);
	}
	if (c->sums)
		copy_in_wire_order(payload, count, (uint32_t *)c->sums + first);
	c->endpoint.chunks_done++;
}

/* Takes the answer to one of the stream's calls, and makes the next call at its position. */
static void advance(struct netrpc_caller *c, uint32_t position, uint8_t word, const uint8_t *body)
{
	struct netrpc_call *call = &c->calls[position];
	uint32_t chunk = call->chunk;

	if (call->method == c->reduce) {
		take_values(c, chunk, body);
		if (c->endpoint.chunks - chunk <= c->width)
			return;
		chunk += c->width;
	}
	c->exponents[chunk] = word;
	post_reduce(c, position, chunk);
}

static int well_formed(const struct netrpc_caller *c, const struct netrpc_header *header, uint32_t length)
{
	uint8_t kind = header->kind ^ NETRPC_RESULT;

	return length >= NETRPC_HEADER_BYTES && header->version == NETRPC_VERSION && kind >= NETRPC_NOTHING &&
	       kind <= NETRPC_KEYS && length == NETRPC_HEADER_BYTES + body_bytes_of(c, kind) &&
	       be16toh(header->job) == c->job && be16toh(header->slot) < c->window;
}

/* Returns whether this answers the call. If the epoch is not known yet, the answer brings it. */
static int answers(const struct netrpc_caller *c, const struct netrpc_call *call, const struct netrpc_header *header)
{
	return be16toh(header->method) == call->method && (header->kind ^ NETRPC_RESULT) == call->answer_kind &&
	       header->epoch && (!c->epoch || be32toh(header->epoch) == c->epoch);
}

/* Returns the call that awaits this answer. If there is none, counts the packet and returns NULL. */
static struct netrpc_call *awaiting(struct netrpc_caller *c, const struct netrpc_header *header, uint32_t length)
{
	struct netrpc_call *call;
	int fits;

	if (!well_formed(c, header, length)) {
		c->endpoint.malformed++;
		return NULL;
	}
	call = &c->calls[be16toh(header->slot)];
	fits = !call->pending.waiting || answers(c, call, header);
	return is_awaited(&c->endpoint, &call->pending, call->sequence, be32toh(header->tag), fits) ? call : NULL;
}

static void take_answer(struct netrpc_caller *c, struct netrpc_call *call, const uint8_t *datagram, uint32_t length)
{
	const struct netrpc_header *header = (const struct netrpc_header *)datagram; /* packed */
	uint32_t position = (uint32_t)(call - c->calls);

	if (call->streams) {
		advance(c, position, header->exponent, datagram + NETRPC_HEADER_BYTES);
		return;
	}
	call->word = header->exponent;
	call->count = be16toh(header->count);
	call->epoch = be32toh(header->epoch);
	memcpy(c->answers + position * c->endpoint.outbox.frame_stride, datagram + NETRPC_HEADER_BYTES, length - NETRPC_HEADER_BYTES);
}

/* A later attempt was answered first, so the first one was lost. With one call at a time no gap shows a loss, so from
 * now on a shorter silence counts as one. Repeating a call is safe: it has one effect however often it is sent. */
static void expect_losses(struct recovery *r)
{
	r->min_rto_ns = LOSSY_RTO_NS < r->min_rto_ns ? LOSSY_RTO_NS : r->min_rto_ns;
	r->slack_ns = LOSSY_RTO_NS < r->slack_ns ? LOSSY_RTO_NS : r->slack_ns;
}

/* Takes a datagram from the peer. Returns whether it was awaited. */
static int take(struct endpoint *e, int64_t now_ns, const uint8_t *datagram, uint32_t length, uint32_t peer)
{
	const struct netrpc_header *header = (const struct netrpc_header *)datagram; /* packed */
	struct netrpc_caller *c = (struct netrpc_caller *)e;
	struct netrpc_call *call;

	(void)peer;
	call = awaiting(c, header, length);
	if (!call)
		return 0;
	endpoint_answered(e, (uint32_t)(call - c->calls), header->attempt, now_ns);
	if (header->attempt)
		expect_losses(e->recoveries);
	take_answer(c, call, datagram, length);
	return 1;
}

/* Takes those datagrams that the peer sent. */
uint32_t netrpc_take(struct endpoint *e, int64_t now_ns, const struct rows *rows)
{
	const struct netrpc_caller *c = (const struct netrpc_caller *)e;
	uint32_t awaited = 0;

	for (uint32_t i = 0; i < rows->count; i++)
		if (rows->peers[i] == c->peer)
			awaited += endpoint_take_one(e, now_ns, rows, i, take);
	endpoint_sample(e);
	return awaited;
}

/* Fills the queue with rows of the whole endpoint's outbox. A caller gives up when none of the endpoint's peers answers.
 */
int netrpc_poll(struct endpoint *e, int64_t now_ns)
{
	const struct netrpc_caller *c = (const struct netrpc_caller *)e;
	struct recovery *recovery = e->recoveries;
	int count;

	endpoint_send_first(e, now_ns);
	e->deadline_ns = INT64_MAX;
	if (recovery->in_flight) {
		if (recovery_gives_up(recovery, c->since_ns, now_ns))
			return -ETIMEDOUT;
		endpoint_send_again(e, 0, now_ns);
		endpoint_wake_at(e, recovery->deadline_ns);
	}
	count = endpoint_flush(e);
	for (int i = 0; i < count; i++)
		e->queue[i] += c->first_row;
	return count;
}
