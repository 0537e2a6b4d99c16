/* A worker of Libra, packet by packet: README.md. With each server it goes through the phases of a round in
 * turn: it pushes hot keys, pushes cold keys, pulls the sums of the cold keys, and in a sampled round learns which keys
 * are hot from now on. */
#include <errno.h>

#include "common.h"

enum { HOT, PUSH, PULL, LEARN, PHASES };

#define NO_AGGREGATOR UINT32_MAX

static const uint8_t REQUESTS[PHASES] = {LIBRA_HOT, LIBRA_PUSH, LIBRA_PULL, LIBRA_LEARN};
static const uint8_t ANSWERS[PHASES] = {LIBRA_HOT_RESULT, LIBRA_PUSH_ANSWER, LIBRA_PULL_RESULT, LIBRA_HOT_KEYS};

/* Returns the number of keys in an item: a group is full, but the last chunk of cold keys may be shorter. */
static uint32_t pairs_of(const struct libra_worker *w, const struct libra_share *share, uint32_t item)
{
	uint64_t first = (uint64_t)item * w->common.lanes;
	uint64_t left = share->cold_pairs > first ? share->cold_pairs - first : 0;

	if (share->phase == HOT || share->phase == LEARN)
		return w->common.lanes;
	return (uint32_t)(left < w->common.lanes ? left : w->common.lanes);
}

/* Lays out keys and values, and sets the datagram's length. */
static uint32_t lay_out(const struct libra_worker *w, const struct libra_share *share, uint32_t item, uint8_t *row)
{
	uint64_t first = (uint64_t)item * w->common.lanes;
	uint32_t pairs = pairs_of(w, share, item);
	const uint64_t *keys = share->phase == HOT ? share->hot_keys : share->cold_keys;
	const uint32_t *values = share->phase == HOT ? share->hot_values : share->cold_values;

	if (share->phase == PULL || share->phase == LEARN)
		return LIBRA_HEADER_BYTES;
	if (pairs) {
		uint8_t *to = row + LIBRA_HEADER_BYTES + pairs * KEY_BYTES;

		libra_put_keys(row, keys + first, pairs);
		for (uint32_t i = 0; i < pairs; i++)
			libra_put_value(to, i, values[first + i]);
	}
	return libra_bytes(pairs, 1, 1);
}

/* Lays out a request and puts it on the queue. */
static void prepare(struct libra_worker *w, uint32_t server, uint32_t item)
{
	struct libra_common *c = &w->common;
	const struct libra_share *share = &w->shares[server];
	uint32_t row = item % c->slots * c->servers + server;
	int bare = share->phase == PULL || share->phase == LEARN;
	struct libra_header header = {
		.version = LIBRA_VERSION,
		.kind = REQUESTS[share->phase],
		.job = htobe16((uint16_t)c->job),
		.session = htobe32(c->session),
		.round = htobe32(c->round),
		.digest = htobe32(w->digest),
		.item = htobe32(item),
		.items = htobe32(share->items[share->phase]),
		.pairs = bare ? 0 : htobe16((uint16_t)pairs_of(w, share, item)),
		.server = (uint8_t)server,
	};

	memcpy(endpoint_row(&c->endpoint, row), &header, sizeof(header));
	c->lengths[row] = lay_out(w, share, item, endpoint_row(&c->endpoint, row));
	c->peers[row] = w->aggregator == NO_AGGREGATOR ? server : w->aggregator;
	w->requests[row].item = item;
	endpoint_prepare(&c->endpoint, row);
}

/* Enters the next phase that has something to ask for. */
static void enter(struct libra_worker *w, uint32_t server, uint32_t phase)
{
	struct libra_share *share = &w->shares[server];
	uint32_t count;

	while (phase < PHASES && !share->items[phase])
		phase++;
	share->phase = phase;
	share->answered = 0;
	if (phase == PHASES)
		return;
	w->common.endpoint.paths[server] = &w->common.endpoint.recoveries[phase * w->common.servers + server];
	/* A server answers the first pulls only when the last worker has pushed, and then all at once. The list of hot
	 * keys waits behind these answers. */
	w->common.endpoint.paths[server]->hold_ns = phase == PULL || phase == LEARN ? w->hold_ns : 0;
	count = share->items[phase] < w->common.slots ? share->items[phase] : w->common.slots;
	for (uint32_t item = 0; item < count; item++)
		prepare(w, server, item);
}

/* Begins the round whose shares are set. */
void libra_worker_begin(struct libra_worker *w, int64_t now_ns)
{
	endpoint_begin(&w->common.endpoint, now_ns);
	w->common.begun = 1;
	w->common.endpoint.chunks = 0;
	for (uint32_t server = 0; server < w->common.servers; server++) {
		for (uint32_t phase = 0; phase < PHASES; phase++)
			w->common.endpoint.chunks += w->shares[server].items[phase];
		enter(w, server, 0);
	}
}

static void take_body(struct libra_worker *w, struct libra_share *share, uint32_t item, const uint8_t *datagram)
{
	uint64_t first = (uint64_t)item * w->common.lanes;
	uint32_t pairs = pairs_of(w, share, item);
	uint32_t *sums = share->phase == HOT ? share->hot_sums : share->cold_sums;

	if (share->phase == LEARN) {
		for (uint32_t i = 0; i < pairs; i++)
			share->learnt[first + i] = libra_key(datagram, i);
	} else if (share->phase != PUSH) {
		for (uint32_t i = 0; i < pairs; i++)
			sums[first + i] = libra_value(datagram + LIBRA_HEADER_BYTES, i);
	}
}

/* Returns whether the number of pairs and the length fit an answer to an item of this phase. */
static int fits(const struct libra_worker *w, const struct libra_share *share, const struct libra_header *header,
		uint32_t length)
{
	uint32_t item = be32toh(header->item), pairs = be16toh(header->pairs);
	uint32_t wanted = share->phase == PUSH ? 0 : pairs_of(w, share, item);

	return pairs == wanted && length == libra_bytes(pairs, share->phase == LEARN, share->phase != LEARN);
}

static int phase_of(uint8_t answer)
{
	for (int phase = 0; phase < PHASES; phase++)
		if (ANSWERS[phase] == answer)
			return phase;
	return PHASES;
}

/* The first answer to LEARN says how many pages there are. */
static int counts_right(const struct libra_share *share, uint32_t phase, uint32_t item, uint32_t items)
{
	if (phase == LEARN && share->phase == LEARN && !item && !share->answered)
		return items && items <= share->pages_max;
	return items == share->items[phase];
}

/* Returns the request that this packet answers. If there is none, counts the packet and returns NULL. */
static struct libra_request *awaiting(struct libra_worker *w, const struct libra_header *header, uint32_t length,
				      uint32_t server)
{
	struct libra_share *share = &w->shares[server];
	struct libra_request *request;
	uint32_t item = be32toh(header->item), phase = (uint32_t)phase_of(header->kind);

	if (header->server != server || !(be64toh(header->workers) >> w->rank & 1) || phase == PHASES || phase > share->phase ||
	    !counts_right(share, phase, item, be32toh(header->items)) || item >= share->items[phase]) {
		w->common.endpoint.malformed++;
		return NULL;
	}
	if (phase < share->phase) {
		w->common.endpoint.duplicates++;
		return NULL;
	}
	request = &w->requests[item % w->common.slots * w->common.servers + server];
	if (item > request->item || !fits(w, share, header, length) ||
	    (item == request->item && request->pending.waiting == QUEUED)) {
		w->common.endpoint.malformed++;
		return NULL;
	}
	if (item == request->item && request->pending.waiting)
		return request;
	w->common.endpoint.duplicates++;
	return NULL;
}

/* Returns whether a packet of this round can be used. If not, counts it. */
static int of_this_round(struct libra_worker *w, const struct libra_header *header, uint32_t length)
{
	int32_t ahead = libra_ahead(header, w->common.round);
	int over = w->common.endpoint.chunks_done == w->common.endpoint.chunks;

	if (!w->common.begun || ahead < 0) {
		w->common.endpoint.late++;
		return 0;
	}
	if (ahead > 0 || (over && be32toh(header->digest) != w->digest) ||
	    (header->kind == LIBRA_MISMATCH && (length != LIBRA_HEADER_BYTES || be32toh(header->digest) == w->digest))) {
		/* This includes a MISMATCH about a round that is over. */
		w->common.endpoint.malformed++;
		return 0;
	}
	if (be32toh(header->digest) != w->digest) {
		w->common.endpoint.error = EPROTO;
		w->common.other_digest = be32toh(header->digest);
		return 0;
	}
	return 1;
}

/* Asks for the pages after the first, now that their number is known. */
static void turn_pages(struct libra_worker *w, uint32_t server, uint32_t pages)
{
	struct libra_share *share = &w->shares[server];

	w->common.endpoint.chunks += pages - share->items[LEARN];
	share->items[LEARN] = pages;
	for (uint32_t page = 1; page < pages && page <= w->common.slots; page++)
		prepare(w, server, page);
}

/* Takes a datagram. Returns whether it was awaited. */
static int take(struct endpoint *e, int64_t now_ns, const uint8_t *datagram, uint32_t length, uint32_t server)
{
	struct libra_worker *w = (struct libra_worker *)e;
	struct libra_header header;
	struct libra_share *share;
	struct libra_request *request;
	uint32_t item;

	if (e->error)
		return 0;
	if (server >= w->common.servers) {
		w->common.endpoint.malformed++; /* the switch itself never answers */
		return 0;
	}
	memcpy(&header, datagram, sizeof(header));
	if (!libra_ours(&w->common, &header, length, LIBRA_HOT_RESULT, LIBRA_MISMATCH))
		return 0;
	if (!of_this_round(w, &header, length))
		return 0;
	request = awaiting(w, &header, length, server);
	if (!request)
		return 0;
	share = &w->shares[server];
	item = request->item;
	endpoint_answered(e, (uint32_t)(request - w->requests), header.attempt, now_ns);
	if (share->phase == PULL)
		e->paths[server]->hold_ns = 0;
	take_body(w, share, item, datagram);
	w->common.endpoint.chunks_done++;
	if (share->phase == LEARN && !item)
		turn_pages(w, server, be32toh(header.items));
	if (++share->answered == share->items[share->phase])
		enter(w, server, share->phase + 1);
	else if (share->items[share->phase] - item > w->common.slots && (share->phase != LEARN || item))
		prepare(w, server, item + w->common.slots);
	return 1;
}

uint32_t libra_worker_take(struct endpoint *e, int64_t now_ns, const struct rows *rows)
{
	return endpoint_take_answers(e, now_ns, rows, take);
}

int libra_worker_poll(struct endpoint *e, int64_t now_ns)
{
	struct libra_worker *w = (struct libra_worker *)e;
	int count = endpoint_poll(e, now_ns);

	for (int i = 0; i < count; i++) {
		uint32_t row = e->queue[i], attempt = w->requests[row].pending.attempt;

		if (!attempt)
			continue;
		if (w->aggregator != NO_AGGREGATOR && attempt >= w->direct_after) {
			w->common.peers[row] = row % w->common.servers;
			w->directly++;
		}
		w->common.bytes_again += WIRE_LOWER_HEADER_BYTES + w->common.lengths[row];
	}
	return count;
}
