/* One NetRPC caller, packet by packet. Clauses are those of README.md. */
#include "netrpc.h"

#include <endian.h>
#include <errno.h>
#include <stddef.h>
#include <string.h>

#include "quantise.h"

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
	if (!c->is_float || chunk >= c->chunks)
		return 0;
	return largest_exponent((const float *)c->values + first_element(c, (uint32_t)chunk),
				chunk_elements(c, (uint32_t)chunk));
}

static uint8_t *frame_of(const struct netrpc_caller *c, uint32_t position)
{
	return c->frames + position * c->frame_stride;
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
	uint32_t headers = 2 * (NETRPC_LOWER_HEADER_BYTES + NETRPC_HEADER_BYTES);
	uint32_t bodies = call->length - NETRPC_HEADER_BYTES + body_bytes_of(c, call->answer_kind);
	uint32_t weight = (headers + bodies) / BYTES_PER_WEIGHT;

	return (uint8_t)(weight < UINT8_MAX ? weight : UINT8_MAX);
}

void netrpc_post(struct netrpc_caller *c, uint32_t position, uint8_t word, uint32_t body_bytes)
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
	recovery_prepare(&c->recovery, &call->pending);
	c->queue[c->queued++] = position;
}

void netrpc_call(struct netrpc_caller *c, uint32_t position, uint16_t method, uint8_t kind, uint8_t answer_kind,
		 uint8_t word, const uint8_t *body, uint32_t body_bytes)
{
	struct netrpc_call *call = &c->calls[position];

	call->method = method;
	call->kind = kind;
	call->answer_kind = answer_kind;
	call->streams = 0;
	memcpy(frame_of(c, position) + NETRPC_HEADER_BYTES, body, body_bytes);
	netrpc_post(c, position, word, body_bytes);
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
	netrpc_post(c, position, own_exponent(c, chunk), 0);
}

static void post_reduce(struct netrpc_caller *c, uint32_t position, uint32_t chunk)
{
	struct netrpc_call *call = &c->calls[position];

	call->method = c->reduce;
	call->kind = call->answer_kind = NETRPC_ARRAY;
	call->chunk = chunk;
	call->streams = 1;
	put_values(c, chunk, (uint32_t *)(frame_of(c, position) + NETRPC_HEADER_BYTES));
	netrpc_post(c, position, own_exponent(c, (uint64_t)chunk + c->width), 4 * c->lanes);
}

void netrpc_stream(struct netrpc_caller *c)
{
	c->chunks_done = 0;
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
	c->chunks_done++;
}

/* Takes the answer to one of the stream's calls, and makes the next call at its position. */
static void advance(struct netrpc_caller *c, uint32_t position, uint8_t word, const uint8_t *body)
{
	struct netrpc_call *call = &c->calls[position];
	uint32_t chunk = call->chunk;

	if (call->method == c->reduce) {
		take_values(c, chunk, body);
		if (c->chunks - chunk <= c->width)
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
		c->unawaited.malformed++;
		return NULL;
	}
	call = &c->calls[be16toh(header->slot)];
	fits = !call->pending.waiting || answers(c, call, header);
	return is_awaited(&c->unawaited, &call->pending, call->sequence, be32toh(header->tag), fits) ? call : NULL;
}

static void take(struct netrpc_caller *c, struct netrpc_call *call, const uint8_t *datagram, uint32_t length)
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
	memcpy(c->answers + position * c->frame_stride, datagram + NETRPC_HEADER_BYTES, length - NETRPC_HEADER_BYTES);
}

/* A later attempt was answered first, so the first one was lost. With one call at a time no gap shows a loss, so from
 * now on a shorter silence counts as one. Repeating a call is safe: it has one effect however often it is sent. */
static void expect_losses(struct recovery *r)
{
	r->min_rto_ns = LOSSY_RTO_NS < r->min_rto_ns ? LOSSY_RTO_NS : r->min_rto_ns;
	r->slack_ns = LOSSY_RTO_NS < r->slack_ns ? LOSSY_RTO_NS : r->slack_ns;
}

uint32_t netrpc_answers(struct netrpc_caller *c, int64_t now_ns, const uint8_t *rows, uint64_t row_bytes,
			const uint32_t *lengths, const uint32_t *peers, uint32_t count)
{
	uint32_t awaited = 0;
	int64_t longest_ns = -1;

	for (uint32_t i = 0; i < count; i++) {
		const uint8_t *datagram = rows + i * row_bytes;
		const struct netrpc_header *header = (const struct netrpc_header *)datagram; /* packed */
		struct netrpc_call *call;
		int64_t rtt_ns;

		if (peers[i] != c->peer)
			continue;
		c->received++;
		c->bytes_received += NETRPC_LOWER_HEADER_BYTES + lengths[i];
		call = awaiting(c, header, lengths[i]);
		if (!call)
			continue;
		awaited++;
		rtt_ns = recovery_answered(&c->recovery, &call->pending, header->attempt, now_ns);
		longest_ns = rtt_ns > longest_ns ? rtt_ns : longest_ns;
		if (header->attempt)
			expect_losses(&c->recovery);
		take(c, call, datagram, lengths[i]);
	}
	/* One sample per batch: answers that were received together share their arrival time. */
	if (longest_ns >= 0)
		recovery_sample(&c->recovery, longest_ns);
	return awaited;
}

static void count_sent(struct netrpc_caller *c, const struct netrpc_call *call)
{
	c->sent++;
	c->bytes_sent += NETRPC_LOWER_HEADER_BYTES + call->length;
}

/* Queues the calls that are due to be sent again. */
static void send_again(struct netrpc_caller *c, int64_t now_ns)
{
	uint32_t *again = c->queue + c->queued;
	uint32_t count = recovery_repeat(&c->recovery, &c->calls->pending, sizeof(*c->calls), c->window, now_ns, again);

	for (uint32_t i = 0; i < count; i++) {
		const struct netrpc_call *call = &c->calls[again[i]];

		frame_of(c, again[i])[offsetof(struct netrpc_header, attempt)] = (uint8_t)call->pending.attempt;
		count_sent(c, call);
	}
	c->queued += count;
}

int netrpc_poll(struct netrpc_caller *c, int64_t now_ns, int64_t since_ns)
{
	int count;

	for (uint32_t i = 0; i < c->queued; i++) {
		struct netrpc_call *call = &c->calls[c->queue[i]];

		recovery_send(&c->recovery, &call->pending, now_ns);
		count_sent(c, call);
	}
	if (!c->recovery.in_flight) {
		c->recovery.deadline_ns = INT64_MAX;
	} else {
		if (recovery_gives_up(&c->recovery, since_ns, now_ns))
			return -ETIMEDOUT;
		send_again(c, now_ns);
	}
	count = (int)c->queued;
	c->queued = 0;
	for (int i = 0; i < count; i++)
		c->queue[i] += c->first_row;
	return count;
}

uint32_t netrpc_layout(void)
{
	return (uint32_t)(sizeof(struct netrpc_caller) << 16 | sizeof(struct netrpc_call));
}
