/* The server that sums what switches could not, packet by packet: README.md. It has no timers: whoever lacks
 * a result asks again.
 *
 * Only the server decides what belongs to a sum. Each packet says which workers' values it brings. It is added if none
 * of them is in the sum yet; if it has all workers' values, it replaces the sum. No other packet is added.
 *
 * A worker sends the next chunk of a position only when it has the result of the one before. So none is more than one
 * chunk of the position ahead of another, over rounds too, and two chunks a position are all that a server has to know.
 */
#include "common.h"
#include "quantise.h"

enum phase { POOLING_EMPTY, POOLING_GATHERS, POOLING_GATHERS_FLOATS, POOLING_COMPLETE };

static uint32_t current_row(const struct pooling_server *s, uint32_t position)
{
	return 2 * position + s->cells[position].generation;
}

static uint32_t previous_row(const struct pooling_server *s, uint32_t position)
{
	return 2 * position + !s->cells[position].generation;
}

static uint32_t mismatch_row(const struct pooling_server *s)
{
	return 2 * s->common.window;
}

enum { ON_QUEUE = 1, AGAIN = 2 }; /* bits of `state` */

static void ask(struct pooling_server *s, uint32_t row, uint32_t members)
{
	if (!(s->state[row] & ON_QUEUE))
		endpoint_queue(&s->common.endpoint, row);
	s->state[row] |= ON_QUEUE;
	s->asked[row] |= members;
}

static void tell(struct pooling_server *s)
{
	struct pooling_header header =
		pooling_header_of(&s->common, POOLING_MISMATCH | POOLING_RESULT, s->disagreed_tag, s->disagreed_digest);

	header.oldest = htobe32(s->common.other_digest);
	*pooling_header_at(&s->common, mismatch_row(s)) = header;
	ask(s, mismatch_row(s), s->everybody);
}

static void disagree(struct pooling_server *s, const struct pooling_cell *cell, uint32_t other)
{
	s->disagreed = 1;
	s->common.other_digest = other;
	s->disagreed_tag = cell->tag;
	s->disagreed_digest = cell->digest;
	tell(s);
}

/* Queues a result that has been sent before. */
static void answer_again(struct pooling_server *s, uint32_t row, const struct pooling_header *header, uint32_t members)
{
	struct pooling_header *result = pooling_header_at(&s->common, row);

	s->common.endpoint.duplicates++;
	if (!(header->flags & POOLING_RESEND) || (s->asked[row] & members) == members)
		return;
	result->attempt = header->attempt;
	s->state[row] |= AGAIN;
	ask(s, row, members);
}

static void begin(struct pooling_server *s, struct pooling_cell *cell, const struct pooling_header *header)
{
	cell->previous_used = cell->phase == POOLING_COMPLETE;
	cell->previous_tag = cell->tag;
	cell->generation = !cell->generation;
	cell->tag = be32toh(header->tag);
	cell->digest = be32toh(header->digest);
	cell->kind = header->kind;
	cell->phase = POOLING_GATHERS;
	cell->members = cell->parts = 0;
	cell->flags = 0;
	/* The workers that asked for the result in this row have contributed to the next chunk since, so they have it. */
	s->asked[2 * (cell->tag % s->common.window) + cell->generation] = 0;
}

/* Turns the current row into a result of this kind for all workers. */
static void answer(struct pooling_server *s, uint32_t position, const struct pooling_header *packet, uint8_t kind)
{
	const struct pooling_cell *cell = &s->cells[position];
	uint32_t row = current_row(s, position);
	struct pooling_header header = pooling_header_of(&s->common, kind | POOLING_RESULT, cell->tag, cell->digest);

	header.slot = packet->slot;
	header.attempt = packet->attempt;
	header.flags = cell->flags;
	*pooling_header_at(&s->common, row) = header;
	s->state[row] &= ~AGAIN;
	ask(s, row, s->everybody);
}

static void finish(struct pooling_server *s, struct pooling_cell *cell)
{
	cell->phase = POOLING_COMPLETE;
	s->summed_ever++;
	s->common.endpoint.chunks_done++;
	s->whole += cell->parts == 1 && cell->kind != POOLING_FLOAT32;
}

static void sums_are_there(struct pooling_server *s, uint32_t position, const struct pooling_header *packet)
{
	struct pooling_cell *cell = &s->cells[position];
	uint32_t *values = pooling_values(&s->common, current_row(s, position));

	if (cell->flags & POOLING_OVERFLOW) {
		memset(values, 0, s->common.lanes * sizeof(*values));
		answer(s, position, packet, POOLING_SCALED);
		cell->phase = POOLING_GATHERS_FLOATS;
		cell->members = 0;
		return;
	}
	for (uint32_t i = 0; i < s->common.lanes; i++)
		values[i] = wire_order(values[i]);
	finish(s, cell);
	answer(s, position, packet, cell->kind);
}

/* Takes integers. Returns whether they became part of the sum. */
static int take_part(struct pooling_server *s, uint32_t position, const struct pooling_header *header, uint32_t members,
		     const uint32_t *payload)
{
	struct pooling_cell *cell = &s->cells[position];
	uint32_t *sum = pooling_values(&s->common, current_row(s, position));
	int replaces = !cell->members || members == s->everybody;

	if (!replaces && !(members & ~cell->members)) {
		s->common.endpoint.duplicates++;
		return 0;
	}
	if (!replaces && members & cell->members) {
		s->overlapping++;
		return 0;
	}
	for (uint32_t i = 0; i < s->common.lanes; i++)
		sum[i] = (replaces ? 0 : sum[i]) + wire_order(payload[i]);
	cell->members |= members;
	cell->flags |= header->flags & (POOLING_OVERFLOW | POOLING_CONGESTED);
	cell->parts = replaces ? 1 : cell->parts + 1;
	s->parts++;
	if (cell->members == s->everybody)
		sums_are_there(s, position, header);
	return 1;
}

static float *floats_of(const struct pooling_server *s, uint32_t position, uint32_t rank)
{
	return s->floats + ((uint64_t)position * s->common.workers + rank) * s->common.lanes;
}

/* Sums in rank order, so that the sum does not depend on the order of arrival. */
static void sum_floats(struct pooling_server *s, uint32_t position)
{
	uint32_t *values = pooling_values(&s->common, current_row(s, position));

	for (uint32_t i = 0; i < s->common.lanes; i++) {
		float total = floats_of(s, position, 0)[i];
		uint32_t bits;

		for (uint32_t rank = 1; rank < s->common.workers; rank++)
			total += floats_of(s, position, rank)[i];
		memcpy(&bits, &total, sizeof(bits));
		values[i] = wire_order(bits);
	}
}

static int take_floats(struct pooling_server *s, uint32_t position, const struct pooling_header *header,
		       uint32_t members, const uint32_t *payload)
{
	struct pooling_cell *cell = &s->cells[position];
	uint32_t *values;

	if (members & (members - 1) || !s->floats) {
		s->common.endpoint.malformed++;
		return 0;
	}
	if (cell->members & members) {
		s->common.endpoint.duplicates++;
		return 0;
	}
	values = (uint32_t *)floats_of(s, position, (uint32_t)__builtin_ctz(members));
	for (uint32_t i = 0; i < s->common.lanes; i++)
		values[i] = wire_order(payload[i]);
	cell->members |= members;
	cell->flags = (cell->flags & ~POOLING_OVERFLOW) | (header->flags & POOLING_CONGESTED);
	if (cell->members == s->everybody) {
		sum_floats(s, position);
		cell->kind = POOLING_FLOAT32;
		finish(s, cell);
		answer(s, position, header, POOLING_FLOAT32);
	}
	return 1;
}

/* Takes a packet of the chunk that the position is about. */
static int take_current(struct pooling_server *s, uint32_t position, const struct pooling_header *header,
			uint32_t members, const uint32_t *payload)
{
	struct pooling_cell *cell = &s->cells[position];

	if (be32toh(header->digest) != cell->digest) {
		if (cell->phase == POOLING_COMPLETE)
			s->common.endpoint.malformed++; /* all workers had the same shape */
		else
			disagree(s, cell, be32toh(header->digest));
		return 0;
	}
	if (cell->phase == POOLING_GATHERS_FLOATS && header->kind == POOLING_FLOAT32)
		return take_floats(s, position, header, members, payload);
	if (header->kind != cell->kind) {
		if (cell->kind == POOLING_FLOAT32 && header->kind == POOLING_SCALED)
			s->common.endpoint.late++; /* a worker that needs the floats has sent its own */
		else
			s->common.endpoint.malformed++;
		return 0;
	}
	if (cell->phase == POOLING_GATHERS)
		return take_part(s, position, header, members, payload);
	answer_again(s, current_row(s, position), header, members);
	return 0;
}

/* Takes a datagram. Returns whether it was awaited. */
static int take(struct endpoint *e, int64_t now_ns, const uint8_t *datagram, uint32_t length, uint32_t peer)
{
	struct pooling_server *s = (struct pooling_server *)e;
	const uint32_t *payload = (const uint32_t *)(datagram + POOLING_HEADER_BYTES);
	struct pooling_header header;
	struct pooling_cell *cell;
	uint32_t tag, position, members, due;

	(void)now_ns;
	(void)peer; /* there is only one */
	memcpy(&header, datagram, sizeof(header));
	if (!pooling_ours(&s->common, &header, length, 0))
		return 0;
	tag = be32toh(header.tag);
	members = be32toh(header.members);
	if (!members || members & ~s->everybody) {
		s->common.endpoint.malformed++;
		return 0;
	}
	if (s->disagreed && (int32_t)(tag - s->disagreed_tag) >= 0) {
		tell(s);
		return 0;
	}
	position = tag % s->common.window;
	cell = &s->cells[position];
	due = cell->phase == POOLING_EMPTY ? position : cell->tag + s->common.window;
	if (cell->phase != POOLING_EMPTY && tag == cell->tag)
		return take_current(s, position, &header, members, payload);
	if (cell->previous_used && tag == cell->previous_tag) {
		const struct pooling_header *before = pooling_header_at(&s->common, previous_row(s, position));

		if (before->kind == (header.kind | POOLING_RESULT) && before->digest == header.digest)
			answer_again(s, previous_row(s, position), &header, members);
		else
			s->common.endpoint.late++;
		return 0;
	}
	if ((int32_t)(tag - due) < 0) {
		s->common.endpoint.late++;
		return 0;
	}
	if (tag != due || (cell->phase != POOLING_EMPTY && cell->phase != POOLING_COMPLETE) ||
	    header.kind == POOLING_FLOAT32) {
		s->common.endpoint.malformed++;
		return 0;
	}
	begin(s, cell, &header);
	return take_part(s, position, &header, members, payload);
}

uint32_t pooling_server_take(struct endpoint *e, int64_t now_ns, const struct rows *rows)
{
	return endpoint_take(e, now_ns, rows, take);
}

int pooling_server_poll(struct endpoint *e, int64_t now_ns)
{
	struct pooling_server *s = (struct pooling_server *)e;
	uint32_t count = 0;

	(void)now_ns;
	for (uint32_t i = 0; i < e->queued; i++) {
		uint32_t row = e->queue[i], members = s->asked[row];

		s->state[row] &= ~ON_QUEUE;
		s->asked[row] = 0;
		if (!members)
			continue;
		pooling_header_at(&s->common, row)->members = htobe32(members);
		s->answered_again += !!(s->state[row] & AGAIN);
		endpoint_count_sent(e, row);
		e->queue[count++] = row;
	}
	e->queued = 0;
	return (int)count;
}
