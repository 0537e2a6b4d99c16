/* A worker of parameter servers, packet by packet: README.md. */
#include <errno.h>

#include "common.h"
#include "quantise.h"

static uint64_t first_element(const struct ps_worker *w, uint32_t chunk)
{
	return (uint64_t)chunk * w->common.lanes;
}

/* Returns a chunk's number of elements. A round has empty chunks if a server would have none otherwise. */
static uint64_t chunk_elements(const struct ps_worker *w, uint32_t chunk)
{
	uint64_t first = first_element(w, chunk), left = first < w->elements ? w->elements - first : 0;

	return left < w->common.lanes ? left : w->common.lanes;
}

/* Lays out the push of a chunk and puts it on the queue. */
static void prepare(struct ps_worker *w, uint32_t chunk)
{
	struct ps_common *c = &w->common;
	uint32_t slot = chunk % c->window;
	uint32_t *restrict payload = ps_values(c, slot);
	uint64_t count = chunk_elements(w, chunk);
	struct ps_header header = ps_header_of(c, c->is_float ? PS_PUSH_FLOAT32 : PS_PUSH_INT32);

	header.chunk = htobe32(chunk);
	header.chunks = htobe32(c->endpoint.chunks);
	memcpy(endpoint_row(&c->endpoint, slot), &header, sizeof(header));
	if (count) {
		const uint32_t *values = w->values + first_element(w, chunk);

		for (uint64_t i = 0; i < count; i++)
			payload[i] = wire_order(values[i]);
	}
	memset(payload + count, 0, (c->lanes - count) * sizeof(*payload));
	w->pushes[slot].chunk = chunk;
	endpoint_prepare(&c->endpoint, slot);
}

/* Begins the round whose fields are set. */
void ps_worker_begin(struct ps_worker *w, int64_t now_ns)
{
	struct ps_common *c = &w->common;

	endpoint_begin(&c->endpoint, now_ns);
	c->begun = 1;
	for (uint32_t chunk = 0; chunk < c->endpoint.chunks && chunk < c->window; chunk++)
		prepare(w, chunk);
}

static void take_values(struct ps_worker *w, uint32_t chunk, const uint8_t *datagram)
{
	const uint32_t *restrict payload = (const uint32_t *)(datagram + PS_HEADER_BYTES);
	uint64_t count = chunk_elements(w, chunk);
	uint32_t *restrict out = w->out + (count ? first_element(w, chunk) : 0);

	for (uint64_t i = 0; i < count; i++)
		out[i] = wire_order(payload[i]);
	w->common.endpoint.chunks_done++;
}

static void disagree(struct ps_worker *w, uint32_t other)
{
	w->common.endpoint.error = EPROTO;
	w->common.other_digest = other;
}

/* Returns the slot that awaits this result. If there is none, counts the packet and returns NULL. */
static struct ps_push *awaiting(struct ps_worker *w, uint32_t chunk, uint32_t chunks, uint32_t length, uint32_t peer)
{
	struct ps_push *push = &w->pushes[chunk % w->common.window];

	if (length != ps_data_bytes(&w->common) || chunks != w->common.endpoint.chunks || chunk >= chunks ||
	    chunk % w->common.servers != peer || chunk > push->chunk ||
	    (chunk == push->chunk && push->pending.waiting == QUEUED)) {
		w->common.endpoint.malformed++;
		return NULL;
	}
	if (chunk == push->chunk && push->pending.waiting)
		return push;
	if (chunk == push->chunk || chunk + w->common.window == push->chunk)
		w->common.endpoint.duplicates++;
	else
		w->common.endpoint.late++;
	return NULL;
}

/* Returns whether a packet of this round can be used. If not, counts it. */
static int of_this_round(struct ps_worker *w, const struct ps_header *header, uint32_t length)
{
	int ahead = ps_ahead(&w->common, header);
	uint32_t digest = be32toh(header->digest), other = be32toh(header->chunks);

	if (!w->common.begun || ahead < 0) {
		w->common.endpoint.late++;
		return 0;
	}
	if (ahead > 0 || (header->kind == PS_MISMATCH && (length != PS_HEADER_BYTES || digest == other)) ||
	    (!endpoint_in_flight(&w->common.endpoint) && (header->kind == PS_MISMATCH || digest != w->common.digest))) {
		/* This includes a MISMATCH about a round that is over. */
		w->common.endpoint.malformed++;
		return 0;
	}
	if (header->kind == PS_MISMATCH) {
		disagree(w, digest == w->common.digest ? other : digest);
		return 0;
	}
	if (digest != w->common.digest) {
		disagree(w, digest);
		return 0;
	}
	return 1;
}

/* Takes a datagram. Returns whether it was awaited. */
static int take(struct endpoint *e, int64_t now_ns, const uint8_t *datagram, uint32_t length, uint32_t peer)
{
	struct ps_worker *w = (struct ps_worker *)e;
	struct ps_header header;
	struct ps_push *push;

	if (e->error)
		return 0;
	memcpy(&header, datagram, sizeof(header));
	if (!ps_ours(&w->common, &header, length, PS_RESULT, PS_MISMATCH))
		return 0;
	if (!of_this_round(w, &header, length))
		return 0;
	push = awaiting(w, be32toh(header.chunk), be32toh(header.chunks), length, peer);
	if (!push)
		return 0;
	endpoint_answered(e, push->chunk % w->common.window, header.attempt, now_ns);
	take_values(w, push->chunk, datagram);
	if (e->chunks - push->chunk > w->common.window)
		prepare(w, push->chunk + w->common.window);
	return 1;
}

uint32_t ps_worker_take(struct endpoint *e, int64_t now_ns, const struct rows *rows)
{
	return endpoint_take_answers(e, now_ns, rows, take);
}

int ps_worker_poll(struct endpoint *e, int64_t now_ns)
{
	return endpoint_poll(e, now_ns);
}
