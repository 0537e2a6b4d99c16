/* A server of Libra, packet by packet: README.md. It has no timers: whoever lacks an answer asks again.
 *
 * No worker begins a round before it has all results of the round before, so a server keeps the state of two rounds.
 */
#include "common.h"

enum { ON_QUEUE = 1, AGAIN = 2 }; /* bits of `asked` */
enum { PULLED = 0x8000 };	      /* bit of `pairs`: the sums of the chunk have been sent */

static uint32_t row_of(const struct libra_server *s, uint32_t rank, uint32_t item)
{
	return rank * s->common.slots + item % s->common.slots;
}

/* The row that tells a worker that shapes differ; these rows follow those of the slots. */
static uint32_t tell_row(const struct libra_server *s, uint32_t rank)
{
	return s->common.workers * s->common.slots + rank;
}

static uint64_t all_workers(const struct libra_server *s)
{
	return UINT64_MAX >> (64 - s->common.workers);
}

static struct libra_round *round_of(const struct libra_server *s, uint32_t round)
{
	return &s->rounds[round & 1];
}

static int complete(const struct libra_server *s, const struct libra_round *r)
{
	return r->used && r->workers_done == s->common.workers;
}

/* Queues a row. again: the same answer has been sent before, unless it is still on the queue. */
static void ask(struct libra_server *s, uint32_t row, uint32_t length, int again)
{
	s->common.endpoint.duplicates += !!again;
	s->common.lengths[row] = length;
	if (s->asked[row] & ON_QUEUE)
		return;
	endpoint_queue(&s->common.endpoint, row);
	s->asked[row] = again ? ON_QUEUE | AGAIN : ON_QUEUE;
}

static uint8_t *begin_answer(struct libra_server *s, uint32_t row, uint32_t rank, const struct libra_round *r,
			     uint8_t kind, uint32_t item, uint32_t items, uint32_t pairs, uint8_t attempt)
{
	struct libra_header header = {
		.version = LIBRA_VERSION,
		.kind = kind,
		.job = htobe16((uint16_t)s->common.job),
		.session = htobe32(s->common.session),
		.round = htobe32(r->round),
		.digest = htobe32(r->digest),
		.item = htobe32(item),
		.items = htobe32(items),
		.pairs = htobe16((uint16_t)pairs),
		.server = (uint8_t)s->index,
		.attempt = attempt,
		.workers = htobe64((uint64_t)1 << rank),
	};

	memcpy(endpoint_row(&s->common.endpoint, row), &header, sizeof(header));
	s->common.peers[row] = rank;
	return endpoint_row(&s->common.endpoint, row);
}

static void tell(struct libra_server *s, uint32_t rank, uint32_t digest)
{
	uint32_t row = tell_row(s, rank);
	uint8_t *datagram = begin_answer(s, row, rank, round_of(s, s->common.round), LIBRA_MISMATCH, 0, 0, 0, 0);

	((struct libra_header *)datagram)->digest = htobe32(digest);
	ask(s, row, LIBRA_HEADER_BYTES, 0);
}

/* Tells the sender the shape of the round, and the other workers the sender's shape. */
static void disagree(struct libra_server *s, uint32_t rank, uint32_t other)
{
	s->common.disagreed = 1;
	s->common.other_digest = other;
	for (uint32_t each = 0; each < s->common.workers; each++)
		tell(s, each, each == rank ? round_of(s, s->common.round)->digest : other);
}

/* Hot keys. */

static uint64_t *parts_of(const struct libra_server *s, const struct libra_round *r, uint32_t group)
{
	return r->parts + (uint64_t)group * s->common.workers;
}

static uint32_t *part_values(const struct libra_server *s, const struct libra_round *r, uint32_t group, uint32_t rank)
{
	return r->part_values + ((uint64_t)group * s->common.workers + rank) * s->common.lanes;
}

/* Writes a group's sums for one worker. */
static uint32_t answer_group(struct libra_server *s, const struct libra_round *r, uint32_t group, uint32_t rank,
			     uint8_t attempt, int again)
{
	uint32_t lanes = s->common.lanes, row = row_of(s, rank, group);
	const uint32_t *sums = part_values(s, r, group, 0);
	uint8_t *datagram = begin_answer(s, row, rank, r, LIBRA_HOT_RESULT, group, r->groups, lanes, attempt);

	for (uint32_t i = 0; i < lanes; i++)
		libra_put_value(datagram + LIBRA_HEADER_BYTES, i, sums[i]);
	ask(s, row, libra_bytes(lanes, 0, 1), again);
	return row;
}

/* Writes a group's sums for all workers behind a switch, in the row of one of them. */
static void answer_rack(struct libra_server *s, const struct libra_round *r, uint32_t group, uint32_t rack,
			uint8_t attempt)
{
	uint64_t workers = s->rack_workers[rack];
	uint32_t row = answer_group(s, r, group, (uint32_t)__builtin_ctzll(workers), attempt, 0);

	((struct libra_header *)endpoint_row(&s->common.endpoint, row))->workers = htobe64(workers);
	s->common.peers[row] = s->rack_peer[rack];
}

/* Adds up the parts of a group, which together have every worker, and answers. */
static void finish_group(struct libra_server *s, struct libra_round *r, uint32_t group, uint8_t attempt)
{
	const uint64_t *parts = parts_of(s, r, group);
	uint32_t *sums = part_values(s, r, group, 0); /* rank 0 is always the lowest of its part */

	for (uint32_t rank = 1; rank < s->common.workers; rank++) {
		const uint32_t *values = part_values(s, r, group, rank);

		for (uint32_t i = 0; parts[rank] && i < s->common.lanes; i++)
			sums[i] += values[i];
	}
	r->whole[group] = 1;
	s->groups_whole++;
	for (uint32_t rack = 0; rack < s->racks; rack++)
		answer_rack(s, r, group, rack, attempt);
}

/* What switches sum are nested sets: a part that has a worker of this one has all of it, or nothing beside it.
 * Returns whether the part is new; it then has taken the place of its own parts. */
static int make_room(struct libra_server *s, uint64_t *parts, uint64_t workers)
{
	for (uint32_t rank = 0; rank < s->common.workers; rank++) {
		if (!(parts[rank] & workers))
			continue;
		if (!(workers & ~parts[rank])) {
			s->common.endpoint.duplicates++;
			return 0;
		}
		if (parts[rank] & ~workers) {
			s->common.endpoint.malformed++;
			return 0;
		}
	}
	for (uint32_t rank = 0; rank < s->common.workers; rank++)
		if (parts[rank] & workers)
			parts[rank] = 0;
	return 1;
}

static int take_group(struct libra_server *s, struct libra_round *r, const struct libra_header *header,
		      const uint8_t *datagram, uint32_t rank, uint64_t workers)
{
	uint32_t group = be32toh(header->item), first = (uint32_t)__builtin_ctzll(workers), lanes = s->common.lanes;
	const uint8_t *payload = datagram + LIBRA_HEADER_BYTES + lanes * KEY_BYTES;
	uint64_t *parts = parts_of(s, r, group), present = 0;
	uint32_t *values = part_values(s, r, group, first);

	if (r->whole[group]) {
		answer_group(s, r, group, rank, header->attempt, 1);
		return 0;
	}
	if (!make_room(s, parts, workers))
		return 0;
	parts[first] = workers;
	for (uint32_t i = 0; i < lanes; i++) {
		r->group_keys[(uint64_t)group * lanes + i] = libra_key(datagram, i);
		values[i] = libra_value(payload, i);
	}
	s->sums += header->kind == LIBRA_SUM;
	s->singles += header->kind == LIBRA_HOT;
	for (uint32_t each = 0; each < s->common.workers; each++)
		present |= parts[each];
	if (present == all_workers(s))
		finish_group(s, r, group, header->attempt);
	return 1;
}

/* Takes a HOT, which brings its sender's values, or a SUM, which brings those of the workers that it names. */
static int take_hot(struct libra_server *s, struct libra_round *r, const struct libra_header *header,
		    const uint8_t *datagram, uint32_t length, uint32_t rank)
{
	uint64_t workers = be64toh(header->workers), own = (uint64_t)1 << rank;
	uint32_t items = be32toh(header->items);

	if (header->kind == LIBRA_HOT && !workers)
		workers = own;
	else if (header->kind == LIBRA_HOT)
		workers = 0;
	if (!(workers & own) || workers & ~all_workers(s) || be16toh(header->pairs) != s->common.lanes ||
	    length != libra_bytes(s->common.lanes, 1, 1) || !items || items > s->groups_max ||
	    be32toh(header->item) >= items || (r->groups && items != r->groups)) {
		s->common.endpoint.malformed++;
		return 0;
	}
	r->groups = items;
	return take_group(s, r, header, datagram, rank, workers);
}

/* Cold keys. */

/* Returns the key's index in the table, or the free index where it belongs. */
static uint32_t place_of(const struct libra_server *s, const struct libra_round *r, uint64_t key)
{
	uint32_t mask = s->capacity - 1;
	uint32_t place = (uint32_t)((key * 0x9e3779b97f4a7c15u) >> 32) & mask;

	while (r->counts[place] && r->keys[place] != key)
		place = (place + 1) & mask;
	return place;
}

static uint64_t chunk_of(const struct libra_server *s, uint32_t rank, uint32_t item)
{
	return (uint64_t)rank * s->chunks_max + item;
}

static int has_room(const struct libra_server *s, const struct libra_round *r, const uint8_t *datagram, uint32_t pairs)
{
	uint32_t left = s->keys_max - r->keys_used, fresh = 0;

	if (pairs <= left)
		return 1;
	for (uint32_t i = 0; i < pairs; i++)
		fresh += !r->counts[place_of(s, r, libra_key(datagram, i))];
	return fresh <= left;
}

/* Returns whether the keys ascend within the server's range, and the table has room for the new ones. */
static int keys_are_legal(const struct libra_server *s, const struct libra_round *r, const uint8_t *datagram,
			  uint32_t pairs)
{
	uint64_t before = 0;

	for (uint32_t i = 0; i < pairs; i++) {
		uint64_t key = libra_key(datagram, i);

		if (key < s->low_key || key > s->high_key || key == NO_KEY || (i && key <= before))
			return 0;
		before = key;
	}
	return has_room(s, r, datagram, pairs) && (!s->store || has_room(s, s->store, datagram, pairs));
}

/* Returns the key's index in a table, after adding it if it is new. */
static uint32_t enter_key(const struct libra_server *s, struct libra_round *r, uint64_t key)
{
	uint32_t place = place_of(s, r, key);

	if (!r->counts[place]) {
		r->keys[place] = key;
		r->values[place] = 0;
		r->keys_used++;
	}
	r->counts[place]++;
	return place;
}

static void add_pairs(struct libra_server *s, struct libra_round *r, const uint8_t *datagram, uint32_t pairs,
		      uint32_t *places)
{
	const uint8_t *values = datagram + LIBRA_HEADER_BYTES + pairs * KEY_BYTES;

	for (uint32_t i = 0; i < pairs; i++) {
		uint64_t key = libra_key(datagram, i);

		places[i] = enter_key(s, r, key);
		r->values[places[i]] += libra_value(values, i);
		if (s->store)
			s->store->counts[enter_key(s, s->store, key)] = 1;
	}
	s->cold_pairs += pairs;
}

/* Answers the worker that pushed a chunk with the sums of its keys. Returns whether they had been sent before. */
static int answer_pull(struct libra_server *s, struct libra_round *r, uint32_t rank, uint32_t item, uint8_t attempt)
{
	uint64_t chunk = chunk_of(s, rank, item);
	uint32_t pairs = (r->pairs[chunk] & ~PULLED) - 1u, row = row_of(s, rank, item);
	int again = r->pairs[chunk] & PULLED;
	const uint32_t *places = r->places + chunk * s->common.lanes;
	uint8_t *datagram = begin_answer(s, row, rank, r, LIBRA_PULL_RESULT, item, r->chunks[rank], pairs, attempt);

	for (uint32_t i = 0; i < pairs; i++)
		libra_put_value(datagram + LIBRA_HEADER_BYTES, i, r->values[places[i]]);
	ask(s, row, libra_bytes(pairs, 0, 1), again);
	r->pairs[chunk] |= PULLED;
	return again != 0;
}

/* Adds the sums of the round to those of all rounds. */
static void add_to_store(struct libra_server *s, struct libra_round *r)
{
	for (uint32_t place = 0; place < s->capacity; place++) {
		uint32_t *so_far;

		if (!r->counts[place])
			continue;
		so_far = &s->store->values[place_of(s, s->store, r->keys[place])];
		*so_far += r->values[place];
		r->values[place] = *so_far;
	}
}

/* All workers have pushed everything: answers the pulls that came before. */
static void finish_round(struct libra_server *s, struct libra_round *r)
{
	s->common.endpoint.needs_python = 1; /* after a sample, the list of hot keys has to be made anew */
	if (s->store)
		add_to_store(s, r);
	for (uint32_t row = 0; row < s->common.workers * s->common.slots; row++) {
		if (s->waiting[row])
			answer_pull(s, r, row / s->common.slots, s->waiting[row] - 1, s->waiting_attempt[row]);
		s->waiting[row] = 0;
	}
}

static int take_push(struct libra_server *s, struct libra_round *r, const struct libra_header *header,
		     const uint8_t *datagram, uint32_t length, uint32_t rank)
{
	uint32_t item = be32toh(header->item), items = be32toh(header->items), pairs = be16toh(header->pairs);
	uint32_t row = row_of(s, rank, item);
	uint64_t chunk;
	int known;

	if (!items || items > s->chunks_max || item >= items || pairs > s->common.lanes ||
	    length != libra_bytes(pairs, 1, 1) || header->workers || (r->chunks[rank] && items != r->chunks[rank])) {
		s->common.endpoint.malformed++;
		return 0;
	}
	chunk = chunk_of(s, rank, item);
	known = r->pairs[chunk] != 0;
	if (!known && (complete(s, r) || !keys_are_legal(s, r, datagram, pairs))) {
		s->common.endpoint.malformed++;
		return 0;
	}
	begin_answer(s, row, rank, r, LIBRA_PUSH_ANSWER, item, items, 0, header->attempt);
	ask(s, row, LIBRA_HEADER_BYTES, known);
	if (known)
		return 0;
	r->chunks[rank] = items;
	r->pairs[chunk] = (uint16_t)(1 + pairs);
	add_pairs(s, r, datagram, pairs, r->places + chunk * s->common.lanes);
	if (++r->arrived[rank] == items && ++r->workers_done == s->common.workers)
		finish_round(s, r);
	return 1;
}

/* Returns whether everything that a worker said it would push has come. */
static int has_pushed(const struct libra_round *r, const struct libra_header *header, uint32_t length, uint32_t rank)
{
	return length == LIBRA_HEADER_BYTES && !header->pairs && !header->workers && r->chunks[rank] &&
	       r->arrived[rank] == r->chunks[rank];
}

static int take_pull(struct libra_server *s, struct libra_round *r, const struct libra_header *header,
		     uint32_t length, uint32_t rank)
{
	uint32_t item = be32toh(header->item), row = row_of(s, rank, item);

	if (!has_pushed(r, header, length, rank) || be32toh(header->items) != r->chunks[rank] ||
	    item >= r->chunks[rank]) {
		s->common.endpoint.malformed++;
		return 0;
	}
	if (!complete(s, r)) {
		if (s->waiting[row] == item + 1)
			s->common.endpoint.duplicates++;
		s->waiting[row] = item + 1;
		s->waiting_attempt[row] = header->attempt;
		return 1;
	}
	return !answer_pull(s, r, rank, item, header->attempt);
}

static int take_learn(struct libra_server *s, struct libra_round *r, const struct libra_header *header,
		      uint32_t length, uint32_t rank)
{
	uint32_t page = be32toh(header->item), row = row_of(s, rank, page), lanes = s->common.lanes;
	uint8_t *datagram, again;

	if (r->round != s->hot_round) {
		s->common.endpoint.late++; /* the list does not exist yet, or has been replaced */
		return 0;
	}
	if (!has_pushed(r, header, length, rank) || !complete(s, r) || page >= s->hot_pages ||
	    (page && be32toh(header->items) != s->hot_pages)) {
		s->common.endpoint.malformed++;
		return 0;
	}
	datagram = begin_answer(s, row, rank, r, LIBRA_HOT_KEYS, page, s->hot_pages, lanes, header->attempt);
	libra_put_keys(datagram, s->hot_keys + (uint64_t)page * lanes, lanes);
	again = s->learnt[(uint64_t)rank * s->hot_pages + page];
	s->learnt[(uint64_t)rank * s->hot_pages + page] = 1;
	ask(s, row, libra_bytes(lanes, 1, 0), again);
	return !again;
}

/* Rounds. */

static void begin_round(struct libra_server *s, const struct libra_header *header)
{
	struct libra_round *r;
	uint64_t workers = s->common.workers, groups = (uint64_t)s->groups_max * workers;

	s->common.begun = 1;
	s->common.round = be32toh(header->round);
	r = round_of(s, s->common.round);
	memset(r->counts, 0, s->capacity * sizeof(*r->counts));
	memset(r->chunks, 0, workers * sizeof(*r->chunks));
	memset(r->arrived, 0, workers * sizeof(*r->arrived));
	memset(r->pairs, 0, workers * s->chunks_max * sizeof(*r->pairs));
	memset(r->parts, 0, groups * sizeof(*r->parts));
	memset(r->whole, 0, s->groups_max);
	r->round = s->common.round;
	r->digest = be32toh(header->digest);
	r->used = 1;
	r->keys_used = r->groups = r->workers_done = 0;
}

/* Returns the round in which a packet can be summed or answered. If there is none, counts the packet and returns NULL. */
static struct libra_round *known_round(struct libra_server *s, const struct libra_header *header, uint32_t rank)
{
	int32_t ahead = libra_ahead(header, s->common.round);
	struct libra_round *r;

	if (ahead < -1 || (ahead <= 0 && !s->common.begun)) {
		s->common.endpoint.late++;
		return NULL;
	}
	if (ahead > 1 || (ahead == 1 && s->common.begun && !complete(s, round_of(s, s->common.round)))) {
		s->common.endpoint.malformed++;
		return NULL;
	}
	if (ahead == 1)
		begin_round(s, header);
	r = round_of(s, be32toh(header->round));
	if (!r->used || r->round != be32toh(header->round)) {
		s->common.endpoint.late++;
		return NULL;
	}
	if (be32toh(header->digest) == r->digest)
		return r;
	if (ahead < 0 || complete(s, r))
		s->common.endpoint.malformed++; /* all workers had the same shape */
	else
		disagree(s, rank, be32toh(header->digest));
	return NULL;
}

/* Takes a datagram. Returns whether it was awaited. */
static int take(struct endpoint *e, int64_t now_ns, const uint8_t *datagram, uint32_t length, uint32_t rank)
{
	struct libra_server *s = (struct libra_server *)e;
	struct libra_header header;
	struct libra_round *r;

	(void)now_ns;
	memcpy(&header, datagram, sizeof(header));
	if (!libra_ours(&s->common, &header, length, LIBRA_HOT, LIBRA_SUM))
		return 0;
	if (header.server != s->index || rank >= s->common.workers) {
		s->common.endpoint.malformed++;
		return 0;
	}
	if (s->common.disagreed && !libra_ahead(&header, s->common.round)) {
		/* A worker in the round before still gets its results. It learns of the disagreement when it begins
		 * this one. */
		r = round_of(s, s->common.round);
		tell(s, rank, be32toh(header.digest) == r->digest ? s->common.other_digest : r->digest);
		return 0;
	}
	r = known_round(s, &header, rank);
	if (!r)
		return 0;
	switch (header.kind) {
	case LIBRA_PUSH:
		return take_push(s, r, &header, datagram, length, rank);
	case LIBRA_PULL:
		return take_pull(s, r, &header, length, rank);
	case LIBRA_LEARN:
		return take_learn(s, r, &header, length, rank);
	default:
		return take_hot(s, r, &header, datagram, length, rank);
	}
}

uint32_t libra_server_take(struct endpoint *e, int64_t now_ns, const struct rows *rows)
{
	return endpoint_take(e, now_ns, rows, take);
}

int libra_server_poll(struct endpoint *e, int64_t now_ns)
{
	struct libra_server *s = (struct libra_server *)e;

	(void)now_ns;
	for (uint32_t i = 0; i < e->queued; i++) {
		uint32_t row = e->queue[i];

		if (s->asked[row] & AGAIN) {
			s->answered_again++;
			s->common.bytes_again += WIRE_LOWER_HEADER_BYTES + s->common.lengths[row];
		}
		s->asked[row] = 0;
		endpoint_count_sent(e, row);
	}
	return endpoint_flush(e);
}
