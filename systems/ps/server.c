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
		s->common.queue[s->common.queued++] = row;
	s->asked[row] = WANTED | ON_QUEUE;
}

/* Returns how many chunks of the round belong to this server. */
static uint32_t own_chunks(const struct ps_server *s, uint32_t chunks)
{
	return (chunks - s->index + s->common.servers - 1) / s->common.servers;
}

static void tell(struct ps_server *s, uint32_t rank)
{
	struct ps_header header = ps_header_of(&s->common, PS_MISMATCH, s->round, s->digest);

	header.chunks = htobe32(s->other_digest);
	memcpy(ps_row(&s->common, tell_row(s, rank)), &header, sizeof(header));
	ask(s, tell_row(s, rank));
}

static void disagree(struct ps_server *s, uint32_t other)
{
	s->disagreed = 1;
	s->other_digest = other;
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
		} else if (s->is_float) {
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
	struct ps_header header = ps_header_of(&s->common, PS_RESULT, s->round, s->digest);

	header.attempt = attempt;
	header.chunk = htobe32(s->slot[slot].chunk);
	header.chunks = htobe32(s->chunks);
	sum_values(s, slot);
	for (uint32_t rank = 0; rank < s->common.workers; rank++) {
		uint32_t row = row_of(s, slot, rank);

		memcpy(ps_row(&s->common, row), &header, sizeof(header));
		memcpy(ps_values(&s->common, row), s->sum, s->common.lanes * sizeof(*s->sum));
		ask(s, row);
	}
	memset(present_of(s, slot), 0, s->bitmap_words * sizeof(*s->present));
	s->summed++;
	s->summed_ever++;
}

static void answer_again(struct ps_server *s, uint32_t slot, uint32_t rank, const struct ps_header *header)
{
	uint32_t row = row_of(s, slot, rank);
	struct ps_header *result = (struct ps_header *)ps_row(&s->common, row);

	if (result->digest != header->digest) {
		s->common.malformed++;
		return;
	}
	result->attempt = header->attempt;
	s->common.duplicates++;
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
	slot->round = (uint16_t)s->round;
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
	return slot->used && slot->round == (uint16_t)s->round ? (uint64_t)slot->chunk + s->common.window : first;
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
			s->common.duplicates++;
			return 0;
		}
	} else if (slot->missing && !is_present(s, index, rank) &&
		   is_chunk(slot->previous_used, slot->previous_round, slot->previous_chunk, round, chunk)) {
		answer_again(s, index, rank, header);
		return 0;
	} else if (round != (uint16_t)s->round || chunk < next_chunk(s, slot, first)) {
		s->common.late++;
		return 0;
	} else if (slot->missing || chunk > next_chunk(s, slot, first)) {
		s->common.malformed++;
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
	s->begun = 1;
	s->round = be16toh(header->round);
	s->digest = be32toh(header->digest);
	s->is_float = header->kind == PS_PUSH_FLOAT32;
	s->chunks = be32toh(header->chunks);
	s->summed = 0;
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

	return digest != s->own_digest && (!s->begun || digest != s->digest);
}

/* Returns whether the push belongs to a round in which it can be summed or answered. If not, counts it. */
static int of_known_round(struct ps_server *s, const struct ps_header *header, uint32_t length)
{
	int ahead = ps_ahead(header, s->round), legal = well_formed(s, header, length);

	if (ahead < -1 || (ahead == 0 && !s->begun)) {
		s->common.late++;
		return 0;
	}
	if (ahead > 1 || (ahead < 0 && !legal) || (ahead == 1 && s->begun && s->summed < own_chunks(s, s->chunks)) ||
	    (ahead == 1 && !legal && !from_elsewhere(s, header))) {
		s->common.malformed++;
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
	if (be32toh(header->digest) != s->digest) {
		if (s->summed == own_chunks(s, s->chunks))
			s->common.malformed++; /* all workers had the same shape */
		else
			disagree(s, be32toh(header->digest));
		return 0;
	}
	if (!legal || be32toh(header->chunks) != s->chunks ||
	    (header->kind == PS_PUSH_FLOAT32) != (s->is_float != 0)) {
		s->common.malformed++;
		return 0;
	}
	return 1;
}

/* Takes a datagram. Returns whether it was awaited. */
static int take(struct ps_server *s, const uint8_t *datagram, uint32_t length, uint32_t rank)
{
	struct ps_header header;

	memcpy(&header, datagram, sizeof(header));
	if (!ps_ours(&s->common, &header, length, PS_PUSH_INT32, PS_PUSH_FLOAT32))
		return 0;
	if (s->disagreed && ps_ahead(&header, s->round) == 0) {
		/* A worker in the round before still gets its results. It learns of the disagreement when it begins
		 * this one. */
		tell(s, rank);
		return 0;
	}
	if (!of_known_round(s, &header, length))
		return 0;
	return take_push(s, &header, datagram, rank);
}

uint32_t ps_server_datagrams(struct ps_server *s, const uint8_t *rows, uint64_t row_bytes, const uint32_t *lengths,
			     const uint32_t *peers, uint32_t count)
{
	uint32_t awaited = 0;

	for (uint32_t i = 0; i < count; i++) {
		ps_count_received(&s->common, lengths[i]);
		awaited += (uint32_t)take(s, rows + i * row_bytes, lengths[i], peers[i]);
	}
	return awaited;
}

/* Fills the queue. Rows that took new values meanwhile are not sent. */
int ps_server_poll(struct ps_server *s)
{
	struct ps_common *c = &s->common;
	uint32_t count = 0;

	for (uint32_t i = 0; i < c->queued; i++) {
		uint32_t row = c->queue[i];
		uint8_t asked = s->asked[row];

		s->asked[row] = 0;
		if (!(asked & WANTED))
			continue;
		s->answered_again += !!(asked & AGAIN);
		ps_count_sent(c, row);
		c->queue[count++] = row;
	}
	c->queued = 0;
	return (int)count;
}

uint32_t ps_server_layout(void)
{
	return (uint32_t)(sizeof(struct ps_server) << 16 | sizeof(struct ps_slot));
}
