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

/* Returns the loss recovery for the server to which a slot's chunks belong. */
static struct recovery *recovery_of(const struct ps_worker *w, uint32_t slot)
{
	return &w->recoveries[slot % w->common.servers];
}

static uint32_t in_flight(const struct ps_worker *w)
{
	uint32_t count = 0;

	for (uint32_t server = 0; server < w->common.servers; server++)
		count += w->recoveries[server].in_flight;
	return count;
}

/* Lays out the push of a chunk and puts it on the queue. */
static void prepare(struct ps_worker *w, uint32_t chunk)
{
	struct ps_common *c = &w->common;
	uint32_t slot = chunk % c->window;
	uint32_t *restrict payload = ps_values(c, slot);
	uint64_t count = chunk_elements(w, chunk);
	struct ps_header header =
		ps_header_of(c, w->is_float ? PS_PUSH_FLOAT32 : PS_PUSH_INT32, w->round, w->digest);

	header.chunk = htobe32(chunk);
	header.chunks = htobe32(w->chunks);
	memcpy(ps_row(c, slot), &header, sizeof(header));
	if (count) {
		const uint32_t *values = w->values + first_element(w, chunk);

		for (uint64_t i = 0; i < count; i++)
			payload[i] = wire_order(values[i]);
	}
	memset(payload + count, 0, (c->lanes - count) * sizeof(*payload));
	w->pushes[slot].chunk = chunk;
	recovery_prepare(recovery_of(w, slot), &w->pushes[slot].pending);
	c->queue[c->queued++] = slot;
}

void ps_worker_begin(struct ps_worker *w, int64_t now_ns)
{
	uint32_t used = w->chunks < w->common.window ? w->chunks : w->common.window;

	w->begun = 1;
	w->chunks_done = 0;
	w->common.queued = 0;
	for (uint32_t server = 0; server < w->common.servers; server++)
		recovery_begin(&w->recoveries[server], now_ns);
	for (uint32_t chunk = 0; chunk < used; chunk++)
		prepare(w, chunk);
}

static void take_values(struct ps_worker *w, uint32_t chunk, const uint8_t *datagram)
{
	const uint32_t *restrict payload = (const uint32_t *)(datagram + PS_HEADER_BYTES);
	uint64_t count = chunk_elements(w, chunk);
	uint32_t *restrict out = w->out + (count ? first_element(w, chunk) : 0);

	for (uint64_t i = 0; i < count; i++)
		out[i] = wire_order(payload[i]);
	w->chunks_done++;
}

static void disagree(struct ps_worker *w, uint32_t other)
{
	w->disagreed = 1;
	w->other_digest = other;
}

/* Returns the slot that awaits this result. If there is none, counts the packet and returns NULL. */
static struct ps_push *awaiting(struct ps_worker *w, uint32_t chunk, uint32_t chunks, uint32_t length, uint32_t peer)
{
	struct ps_push *push = &w->pushes[chunk % w->common.window];

	if (length != ps_data_bytes(&w->common) || chunks != w->chunks || chunk >= chunks ||
	    chunk % w->common.servers != peer || chunk > push->chunk ||
	    (chunk == push->chunk && push->pending.waiting == QUEUED)) {
		w->common.malformed++;
		return NULL;
	}
	if (chunk == push->chunk && push->pending.waiting)
		return push;
	if (chunk == push->chunk || chunk + w->common.window == push->chunk)
		w->common.duplicates++;
	else
		w->common.late++;
	return NULL;
}

/* Returns whether a packet of this round can be used. If not, counts it. */
static int of_this_round(struct ps_worker *w, const struct ps_header *header, uint32_t length)
{
	int ahead = ps_ahead(header, w->round);
	uint32_t digest = be32toh(header->digest), other = be32toh(header->chunks);

	if (!w->begun || ahead < 0) {
		w->common.late++;
		return 0;
	}
	if (ahead > 0 || (header->kind == PS_MISMATCH && (length != PS_HEADER_BYTES || digest == other)) ||
	    (!in_flight(w) && (header->kind == PS_MISMATCH || digest != w->digest))) {
		/* This includes a MISMATCH about a round that is over. */
		w->common.malformed++;
		return 0;
	}
	if (header->kind == PS_MISMATCH) {
		disagree(w, digest == w->digest ? other : digest);
		return 0;
	}
	if (digest != w->digest) {
		disagree(w, digest);
		return 0;
	}
	return 1;
}

/* Takes a datagram. Returns whether it was awaited. */
static int take(struct ps_worker *w, int64_t now_ns, const uint8_t *datagram, uint32_t length, uint32_t peer)
{
	struct ps_header header;
	struct ps_push *push;
	int64_t sample_ns;

	memcpy(&header, datagram, sizeof(header));
	if (!ps_ours(&w->common, &header, length, PS_RESULT, PS_MISMATCH))
		return 0;
	if (!of_this_round(w, &header, length))
		return 0;
	push = awaiting(w, be32toh(header.chunk), be32toh(header.chunks), length, peer);
	if (!push)
		return 0;
	sample_ns = recovery_answered(&w->recoveries[peer], &push->pending, header.attempt, now_ns);
	w->rtts_ns[peer] = sample_ns > w->rtts_ns[peer] ? sample_ns : w->rtts_ns[peer];
	take_values(w, push->chunk, datagram);
	if (w->chunks - push->chunk > w->common.window)
		prepare(w, push->chunk + w->common.window);
	return 1;
}

uint32_t ps_worker_datagrams(struct ps_worker *w, int64_t now_ns, const uint8_t *rows, uint64_t row_bytes,
			     const uint32_t *lengths, const uint32_t *peers, uint32_t count)
{
	uint32_t awaited = 0;

	for (uint32_t server = 0; server < w->common.servers; server++)
		w->rtts_ns[server] = -1;
	for (uint32_t i = 0; i < count; i++) {
		ps_count_received(&w->common, lengths[i]);
		if (!w->disagreed)
			awaited += (uint32_t)take(w, now_ns, rows + i * row_bytes, lengths[i], peers[i]);
	}
	for (uint32_t server = 0; server < w->common.servers; server++)
		if (w->rtts_ns[server] >= 0)
			recovery_sample(&w->recoveries[server], w->rtts_ns[server]);
	return awaited;
}

/* Queues the pushes to one server that are due; they have every servers-th slot, from the server's index on. */
static void send_again(struct ps_worker *w, uint32_t server, int64_t now_ns)
{
	struct ps_common *c = &w->common;
	uint32_t *again = c->queue + c->queued;
	uint32_t count = recovery_repeat(&w->recoveries[server], &w->pushes[server].pending,
					 c->servers * sizeof(*w->pushes), c->window / c->servers, now_ns, again);

	for (uint32_t i = 0; i < count; i++) {
		uint32_t slot = again[i] * c->servers + server;
		struct ps_header *header = (struct ps_header *)ps_row(c, slot);

		header->attempt = (uint8_t)w->pushes[slot].pending.attempt;
		ps_count_sent(c, slot);
		again[i] = slot;
	}
	c->queued += count;
}

/* Sets the deadline. Returns 0, or -ETIMEDOUT if no server has answered for too long. */
static int check_timers(struct ps_worker *w, int64_t now_ns)
{
	int64_t since_ns = recovery_latest_progress_ns(w->recoveries, w->common.servers);

	w->deadline_ns = INT64_MAX;
	for (uint32_t server = 0; server < w->common.servers; server++) {
		struct recovery *r = &w->recoveries[server];

		if (!r->in_flight)
			continue;
		if (recovery_gives_up(r, since_ns, now_ns))
			return -ETIMEDOUT;
		send_again(w, server, now_ns);
		w->deadline_ns = r->deadline_ns < w->deadline_ns ? r->deadline_ns : w->deadline_ns;
	}
	return 0;
}

int ps_worker_poll(struct ps_worker *w, int64_t now_ns)
{
	struct ps_common *c = &w->common;
	int count, failed;

	if (w->disagreed)
		return -EPROTO;
	for (uint32_t i = 0; i < c->queued; i++) {
		recovery_send(recovery_of(w, c->queue[i]), &w->pushes[c->queue[i]].pending, now_ns);
		ps_count_sent(c, c->queue[i]);
	}
	failed = check_timers(w, now_ns);
	if (failed)
		return failed;
	count = (int)c->queued;
	c->queued = 0;
	return count;
}

uint32_t ps_worker_layout(void)
{
	return (uint32_t)(sizeof(struct ps_worker) << 16 | sizeof(struct ps_push));
}
