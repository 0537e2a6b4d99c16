/* A parameter server, packet by packet: README.md. It has no timers: whoever lacks a result asks again.
 *
 * A worker pushes a slot's next chunk only when it has the result of the one before. So no worker is more than one
 * chunk of the slot ahead of another, even across rounds, and a server keeps two chunks for each slot.
 */
#include "common.h"
#include "quantise.h"

static uint64_t *present_of(const struct ps_server *s, uint32_t slot)
{
	return s->present + (uint64_t)slot * s->bitmap_words;
}

static int is_present(const struct ps_server *s, uint32_t slot, uint32_t rank)
{
	return present_of(s, slot)[rank / 64] >> rank % 64 & 1;
}

static uint32_t row_of(const struct ps_server *s, uint32_t slot, uint32_t rank)
{
	return slot * s->common.workers + rank;
}

/* The row that tells a worker that shapes differ; these rows follow those of the slots. */
static uint32_t tell_row(const struct ps_server *s, uint32_t rank)
{
	return s->slots * s->common.workers + rank;
}

enum { WANTED = 1, ON_QUEUE = 2, AGAIN = 4 }; /* bits of `asked` */

static void ask(struct ps_server *s, uint32_t row)
{
	if (!(s->asked[row] & ON_QUEUE))
		endpoint_queue(&s->common.endpoint, row);
	s->asked[row] = WANTED | ON_QUEUE;
}

/* Whether all chunks of the round that belong to this server are summed. */
static int complete_round(const struct ps_server *s)
{
	return s->common.endpoint.chunks_done == s->common.endpoint.chunks;
}

static void tell(struct ps_server *s, uint32_t rank)
{
	struct ps_header header = ps_header_of(&s->common, PS_MISMATCH);

	header.chunks = htobe32(s->common.other_digest);
	memcpy(endpoint_row(&s->common.endpoint, tell_row(s, rank)), &header, sizeof(header));
	ask(s, tell_row(s, rank));
}

static void disagree(struct ps_server *s, uint32_t other)
{
	s->common.disagreed = 1;
	s->common.other_digest = other;
	for (uint32_t rank = 0; rank < s->common.workers; rank++)
		tell(s, rank);
}

/* Sums in rank order, so that a float32 sum does not depend on the order of arrival. */
static void sum_values(struct ps_server *s, uint32_t slot)
{
	uint32_t *restrict sum = s->sum;
	uint32_t lanes = s->common.lanes;

	for (uint32_t rank = 0; rank < s->common.workers; rank++) {
		const uint32_t *restrict values = ps_values(&s->common, row_of(s, slot, rank));

		if (!rank) {
			memcpy(sum, values, lanes * sizeof(*sum));
		} else if (s->common.is_float) {
			for (uint32_t i = 0; i < lanes; i++) {
				float total, value;

				memcpy(&total, &sum[i], sizeof(total));
				memcpy(&value, &values[i], sizeof(value));
				total += value;
				memcpy(&sum[i], &total, sizeof(total));
			}
		} else {
			for (uint32_t i = 0; i < lanes; i++)
				sum[i] += values[i];
		}
	}
	for (uint32_t i = 0; i < lanes; i++)
		sum[i] = wire_order(sum[i]);
}

/* Turns all workers' rows into the result. */
static void complete(struct ps_server *s, uint32_t slot, uint8_t attempt)
{
	struct ps_header header = ps_header_of(&s->common, PS_RESULT);

	header.attempt = attempt;
	header.chunk = htobe32(s->slot[slot].chunk);
	header.chunks = htobe32(s->round_chunks);
	sum_values(s, slot);
	for (uint32_t rank = 0; rank < s->common.workers; rank++) {
		uint32_t row = row_of(s, slot, rank);

		memcpy(endpoint_row(&s->common.endpoint, row), &header, sizeof(header));
		memcpy(ps_values(&s->common, row), s->sum, s->common.lanes * sizeof(*s->sum));
		ask(s, row);
	}
	memset(present_of(s, slot), 0, s->bitmap_words * sizeof(*s->present));
	s->common.endpoint.chunks_done++;
	s->summed_ever++;
}

static void answer_again(struct ps_server *s, uint32_t slot, uint32_t rank, const struct ps_header *header)
{
	uint32_t row = row_of(s, slot, rank);
	struct ps_header *result = (struct ps_header *)endpoint_row(&s->common.endpoint, row);

	if (result->digest != header->digest) {
		s->common.endpoint.malformed++;
		return;
	}
	result->attempt = header->attempt;
	s->common.endpoint.duplicates++;
	if (!(s->asked[row] & WANTED)) {
		ask(s, row);
		s->asked[row] |= AGAIN;
	}
}

/* Writes the worker's values, in host byte order, over the result that it already has. */
static void keep_values(struct ps_server *s, uint32_t slot, uint32_t rank, const uint8_t *datagram)
{
	const uint32_t *restrict payload = (const uint32_t *)(datagram + PS_HEADER_BYTES);
	uint32_t row = row_of(s, slot, rank);
	uint32_t *restrict values = ps_values(&s->common, row);

	for (uint32_t i = 0; i < s->common.lanes; i++)
		values[i] = wire_order(payload[i]);
	s->asked[row] &= ~WANTED;
	present_of(s, slot)[rank / 64] |= (uint64_t)1 << rank % 64;
}

static void begin_chunk(struct ps_server *s, struct ps_slot *slot, uint32_t chunk)
{
	slot->previous_chunk = slot->chunk;
	slot->previous_round = slot->round;
	slot->previous_used = slot->used;
	slot->chunk = chunk;
	slot->round = (uint16_t)s->common.round;
	slot->used = 1;
	slot->missing = s->common.workers;
}

static int is_chunk(uint8_t used, uint16_t slots_round, uint32_t slots_chunk, uint16_t round, uint32_t chunk)
{
	return used && slots_round == round && slots_chunk == chunk;
}

/* Returns the slot's next chunk in this round. */
static uint64_t next_chunk(const struct ps_server *s, const struct ps_slot *slot, uint32_t first)
{
	return slot->used && slot->round == (uint16_t)s->common.round ? (uint64_t)slot->chunk + s->common.window : first;
}

/* Takes a push of this round or the one before, whose numbers have been checked. Returns whether it was awaited. */
static int take_push(struct ps_server *s, const struct ps_header *header, const uint8_t *datagram, uint32_t rank)
{
	uint32_t chunk = be32toh(header->chunk), first = chunk % s->common.window, index = first / s->common.servers;
	uint16_t round = be16toh(header->round);
	struct ps_slot *slot = &s->slot[index];

	if (is_chunk(slot->used, slot->round, slot->chunk, round, chunk)) {
		if (!slot->missing) {
			answer_again(s, index, rank, header);
			return 0;
		}
		if (is_present(s, index, rank)) {
			s->common.endpoint.duplicates++;
			return 0;
		}
	} else if (slot->missing && !is_present(s, index, rank) &&
		   is_chunk(slot->previous_used, slot->previous_round, slot->previous_chunk, round, chunk)) {
		answer_again(s, index, rank, header);
		return 0;
	} else if (round != (uint16_t)s->common.round || chunk < next_chunk(s, slot, first)) {
		s->common.endpoint.late++;
		return 0;
	} else if (slot->missing || chunk > next_chunk(s, slot, first)) {
		s->common.endpoint.malformed++;
		return 0;
	} else {
		begin_chunk(s, slot, chunk);
	}
	keep_values(s, index, rank, datagram);
	if (!--slot->missing)
		complete(s, index, header->attempt);
	return 1;
}

/* Begins a round. Its first packet does so once the round before is complete. */
static void begin_round(struct ps_server *s, const struct ps_header *header)
{
	s->common.begun = 1;
	s->common.round = be16toh(header->round);
	s->common.digest = be32toh(header->digest);
	s->common.is_float = header->kind == PS_PUSH_FLOAT32;
	s->round_chunks = be32toh(header->chunks);
	s->common.endpoint.chunks = (s->round_chunks - s->index + s->common.servers - 1) / s->common.servers;
	s->common.endpoint.chunks_done = 0;
}

static int well_formed(const struct ps_server *s, const struct ps_header *header, uint32_t length)
{
	uint32_t chunk = be32toh(header->chunk), chunks = be32toh(header->chunks);

	return length == ps_data_bytes(&s->common) && chunks >= s->common.servers && chunk < chunks &&
	       chunk % s->common.servers == s->index;
}

/* Called for the first push of the next round, which this server cannot sum. Returns whether its shape is one of which
 * the server has summed nothing: then its sender was started with another number of lanes, and every worker has to be
 * told. */
static int from_elsewhere(const struct ps_server *s, const struct ps_header *header)
{
	uint32_t digest = be32toh(header->digest);

	return digest != s->own_digest && (!s->common.begun || digest != s->common.digest);
}

/* Returns whether the push belongs to a round in which it can be summed or answered. If not, counts it. */
static int of_known_round(struct ps_server *s, const struct ps_header *header, uint32_t length)
{
	int ahead = ps_ahead(&s->common, header), legal = well_formed(s, header, length);

	if (ahead < -1 || (ahead == 0 && !s->common.begun)) {
		s->common.endpoint.late++;
		return 0;
	}
	if (ahead > 1 || (ahead < 0 && !legal) || (ahead == 1 && !complete_round(s)) ||
	    (ahead == 1 && !legal && !from_elsewhere(s, header))) {
		s->common.endpoint.malformed++;
		return 0;
	}
	if (ahead == 1) {
		begin_round(s, header);
		if (!legal) {
			disagree(s, s->own_digest);
			return 0;
		}
	}
	if (ahead < 0)
		return 1;
	if (be32toh(header->digest) != s->common.digest) {
		if (complete_round(s))
			s->common.endpoint.malformed++; /* all workers had the same shape */
		else
			disagree(s, be32toh(header->digest));
		return 0;
	}
	if (!legal || be32toh(header->chunks) != s->round_chunks ||
	    (header->kind == PS_PUSH_FLOAT32) != (s->common.is_float != 0)) {
		s->common.endpoint.malformed++;
		return 0;
	}
	return 1;
}

/* Takes a datagram. Returns whether it was awaited. */
static int take(struct endpoint *e, int64_t now_ns, const uint8_t *datagram, uint32_t length, uint32_t rank)
{
	struct ps_server *s = (struct ps_server *)e;
	struct ps_header header;

	(void)now_ns;
	memcpy(&header, datagram, sizeof(header));
	if (!ps_ours(&s->common, &header, length, PS_PUSH_INT32, PS_PUSH_FLOAT32))
		return 0;
	if (s->common.disagreed && ps_ahead(&s->common, &header) == 0) {
		/* A worker in the round before still gets its results. It learns of the disagreement when it begins
		 * this one. */
		tell(s, rank);
		return 0;
	}
	if (!of_known_round(s, &header, length))
		return 0;
	return take_push(s, &header, datagram, rank);
}

uint32_t ps_server_take(struct endpoint *e, int64_t now_ns, const struct rows *rows)
{
	return endpoint_take(e, now_ns, rows, take);
}

/* Fills the queue. Rows that took new values meanwhile are not sent. */
int ps_server_poll(struct endpoint *e, int64_t now_ns)
{
	struct ps_server *s = (struct ps_server *)e;
	uint32_t count = 0;

	(void)now_ns;
	for (uint32_t i = 0; i < e->queued; i++) {
		uint32_t row = e->queue[i];
		uint8_t asked = s->asked[row];

		s->asked[row] = 0;
		if (!(asked & WANTED))
			continue;
		s->answered_again += !!(asked & AGAIN);
		endpoint_count_sent(e, row);
		e->queue[count++] = row;
	}
	e->queued = 0;
	return (int)count;
}
