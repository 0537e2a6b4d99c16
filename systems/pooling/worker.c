/* A worker whose chunks share the slots of switches with other jobs', packet by packet: README.md. */
#include <errno.h>
#include <math.h>

#include "aimd.h"
#include "common.h"
#include "quantise.h"

static uint32_t tag_of(const struct pooling_worker *w, uint32_t chunk)
{
	return w->first_tag + chunk;
}

static uint32_t position_of(const struct pooling_worker *w, uint32_t chunk)
{
	return tag_of(w, chunk) % w->common.window;
}

static uint64_t first_element(const struct pooling_worker *w, uint32_t chunk)
{
	return (uint64_t)chunk * w->common.lanes;
}

/* Returns a chunk's number of elements. A round without elements has one empty chunk, so that all workers meet. */
static uint64_t chunk_elements(const struct pooling_worker *w, uint32_t chunk)
{
	uint64_t first = first_element(w, chunk), left = first < w->elements ? w->elements - first : 0;

	return left < w->common.lanes ? left : w->common.lanes;
}

static double scale_of(const struct pooling_worker *w)
{
	return power_of_two(w->scale_log2);
}

/* Returns whether the sum of all workers' integers surely fits an integer. With Inf or NaN it never does. */
static int fits(const struct pooling_worker *w, const float *values, uint64_t count)
{
	double scale = scale_of(w), limit = (double)((1u << w->value_bits) - 1);
	int all = 1;

	for (uint64_t i = 0; i < count; i++)
		all &= fabs(values[i] * scale) <= limit;
	return all;
}

/* Writes the values as integers, and returns the packet's flags. If a value does not fit, only the flag is sent. */
static uint8_t put_scaled(const struct pooling_worker *w, const float *values, uint64_t count, uint32_t *payload)
{
	double scale = scale_of(w), limit = (double)((1u << w->value_bits) - 1);

	if (!fits(w, values, count)) {
		memset(payload, 0, count * sizeof(*payload));
		return POOLING_OVERFLOW;
	}
	for (uint64_t i = 0; i < count; i++)
		payload[i] = wire_order(quantise_one(values[i], scale, limit));
	return 0;
}

/* Lays out a chunk's contribution and puts it on the queue. */
static void prepare(struct pooling_worker *w, uint32_t chunk, uint32_t floats)
{
	struct pooling_common *c = &w->common;
	uint32_t position = position_of(w, chunk);
	uint32_t *payload = pooling_values(c, position);
	uint64_t count = chunk_elements(w, chunk);
	const uint32_t *values = w->values + (count ? first_element(w, chunk) : 0);
	uint8_t kind = !w->is_float ? POOLING_INT32 : floats ? POOLING_FLOAT32 : POOLING_SCALED;
	struct pooling_header header = pooling_header_of(c, kind, tag_of(w, chunk), w->digest);

	if (kind == POOLING_SCALED)
		header.flags = put_scaled(w, (const float *)values, count, payload);
	else
		for (uint64_t i = 0; i < count; i++)
			payload[i] = wire_order(values[i]);
	memset(payload + count, 0, (c->lanes - count) * sizeof(*payload));
	header.slot = htobe16(w->slots[tag_of(w, chunk) % w->slot_count]);
	header.priority = (uint8_t)w->priority;
	memcpy(pooling_header_at(c, position), &header, sizeof(header));
	w->positions[position].chunk = chunk;
	w->positions[position].floats = floats;
	endpoint_prepare(&c->endpoint, position);
}

/* Queues the chunks that the windows allow. Chunks are sent in order, and a position's next chunk only after the result
 * of the chunk before. */
static void fill(struct pooling_worker *w)
{
	const struct endpoint *e = &w->common.endpoint;

	while (w->next < e->chunks && w->next - w->oldest < w->common.window &&
	       e->recoveries->in_flight < w->aimd.window)
		prepare(w, w->next++, 0);
}

/* Begins the round whose fields are set. */
void pooling_worker_begin(struct pooling_worker *w, int64_t now_ns)
{
	endpoint_begin(&w->common.endpoint, now_ns);
	w->begun = 1;
	w->oldest = w->next = 0;
	fill(w);
}

static void take_values(struct pooling_worker *w, uint32_t chunk, const uint8_t *datagram, uint8_t kind)
{
	const uint32_t *payload = (const uint32_t *)(datagram + POOLING_HEADER_BYTES);
	uint64_t first = first_element(w, chunk), count = chunk_elements(w, chunk);
	double unit = power_of_two(-w->scale_log2);

	if (!count)
		return;
	if (w->sums)
		for (uint64_t i = 0; i < count; i++)
			w->sums[first + i] = kind == POOLING_FLOAT32 ? 0 : wire_order(payload[i]);
	if (kind == POOLING_SCALED) {
		float *out = (float *)w->out + first;

		for (uint64_t i = 0; i < count; i++)
			out[i] = (float)((int32_t)wire_order(payload[i]) * unit);
	} else {
		for (uint64_t i = 0; i < count; i++)
			w->out[first + i] = wire_order(payload[i]);
	}
}

static void complete(struct pooling_worker *w, uint32_t chunk, const uint8_t *datagram, uint8_t kind)
{
	take_values(w, chunk, datagram, kind);
	w->common.endpoint.chunks_done++;
	w->overflown += kind == POOLING_FLOAT32;
	while (w->oldest < w->next) {
		const struct pooling_position *oldest = &w->positions[position_of(w, w->oldest)];

		if (oldest->chunk == w->oldest && oldest->pending.waiting)
			break;
		w->oldest++;
	}
}

/* Returns the position that awaits this result. If there is none, counts the packet and returns NULL. */
static struct pooling_position *awaiting(struct pooling_worker *w, const struct pooling_header *header, uint8_t kind)
{
	uint32_t chunk = be32toh(header->tag) - w->first_tag;
	struct pooling_position *p = &w->positions[position_of(w, chunk)];

	if (be32toh(header->digest) != w->digest || chunk >= w->next ||
	    (p->chunk == chunk && p->pending.waiting == QUEUED) ||
	    (kind == POOLING_INT32) == (w->is_float != 0) ||
	    (p->chunk == chunk && kind == POOLING_FLOAT32 && !p->floats)) {
		w->common.endpoint.malformed++;
		return NULL;
	}
	if (p->chunk != chunk || !p->pending.waiting || (p->floats && kind != POOLING_FLOAT32)) {
		w->common.endpoint.duplicates++;
		return NULL;
	}
	return p;
}

static void disagree(struct pooling_worker *w, const struct pooling_header *header)
{
	uint32_t digest = be32toh(header->digest), other = be32toh(header->oldest);

	if (digest == other || !w->common.endpoint.recoveries->in_flight) {
		w->common.endpoint.malformed++;
		return;
	}
	w->common.endpoint.error = EPROTO;
	w->common.other_digest = digest == w->digest ? other : digest;
}

/* All workers send their chunks for the first time in the same order, so an answer to a first transmission shows that
 * everything before it was overtaken. A repeated packet waits for no other worker in a slot, so its answer says nothing
 * about first transmissions, only about earlier repetitions. */
static void answered(struct pooling_worker *w, uint32_t position, uint8_t attempt, int64_t now_ns)
{
	struct recovery *recovery = w->common.endpoint.recoveries;
	const struct pending *p = &w->positions[position].pending;
	uint64_t before = recovery->answered_order;

	endpoint_answered(&w->common.endpoint, position, attempt, now_ns);
	if (attempt) {
		if (attempt == p->attempt && p->order > w->again_answered)
			w->again_answered = p->order;
		recovery->answered_order = p->first_order > before ? p->first_order : before;
	}
}

/* Takes a datagram. Returns whether it was awaited. */
static int take(struct endpoint *e, int64_t now_ns, const uint8_t *datagram, uint32_t length, uint32_t peer)
{
	struct pooling_worker *w = (struct pooling_worker *)e;
	struct pooling_header header;
	struct pooling_position *p;
	uint8_t kind;

	(void)peer; /* there is only one */
	if (e->error)
		return 0;
	memcpy(&header, datagram, sizeof(header));
	if (!pooling_ours(&w->common, &header, length, POOLING_RESULT))
		return 0;
	if (!w->begun || (int32_t)(be32toh(header.tag) - w->first_tag) < 0) {
		w->common.endpoint.late++;
		return 0;
	}
	kind = header.kind ^ POOLING_RESULT;
	if (kind == POOLING_MISMATCH) {
		disagree(w, &header);
		return 0;
	}
	p = awaiting(w, &header, kind);
	if (!p)
		return 0;
	answered(w, (uint32_t)(p - w->positions), header.attempt, now_ns);
	w->marked += !!(header.flags & POOLING_CONGESTED);
	if (w->aimd.least < w->aimd.most)
		aimd_answered(&w->aimd, header.flags & POOLING_CONGESTED);
	if (header.flags & POOLING_OVERFLOW && kind == POOLING_SCALED)
		prepare(w, p->chunk, 1);
	else
		complete(w, p->chunk, datagram, kind);
	return 1;
}

uint32_t pooling_worker_take(struct endpoint *e, int64_t now_ns, const struct rows *rows)
{
	uint32_t awaited = endpoint_take(e, now_ns, rows, take);

	if (awaited)
		fill((struct pooling_worker *)e);
	endpoint_end_if_answered(e);
	return awaited;
}

/* Finds repeated packets that are lost too: something that was repeated later has been answered. */
static void find_gaps(struct pooling_worker *w)
{
	for (uint32_t i = 0; i < w->common.window; i++) {
		struct pending *p = &w->positions[i].pending;

		if (p->waiting == SENT && p->attempt && p->order < w->again_answered)
			p->order = 0;
	}
}

/* A gap shows the loss of one packet, or that other workers left its slot; a silence shows a busy path. */
int pooling_worker_poll(struct endpoint *e, int64_t now_ns)
{
	struct pooling_worker *w = (struct pooling_worker *)e;
	uint64_t timeouts = e->recoveries->timeouts;
	int count;

	find_gaps(w);
	count = endpoint_poll(e, now_ns);
	if (e->recoveries->timeouts > timeouts)
		aimd_lost(&w->aimd);
	for (int i = 0; i < count; i++) {
		struct pooling_header *header = pooling_header_at(&w->common, e->queue[i]);

		header->oldest = htobe32(tag_of(w, w->oldest));
		if (w->positions[e->queue[i]].pending.attempt)
			header->flags |= POOLING_RESEND;
	}
	return count;
}

/* Gives a window one answer, for the test that compares it with hosts/aimd.py. */
void pooling_aimd(struct aimd *a, int marked, int lost)
{
	if (lost)
		aimd_lost(a);
	else
		aimd_answered(a, marked);
}
