/* One OmniReduce worker, packet by packet. Clauses are those of README.md. The worker's state is declared in state.py.
 */
#include <endian.h>
#include <errno.h>
#include <string.h>

#include "fuse.h"
#include "quantise.h"
#include "shapes.h"
#include "unawaited.h"

static uint64_t first_element(const struct omnireduce_worker *w, uint32_t block)
{
	return (uint64_t)block * w->lanes;
}

static uint64_t block_elements(const struct omnireduce_worker *w, uint32_t block)
{
	uint64_t left = w->elements - first_element(w, block);

	return left < w->lanes ? left : w->lanes;
}

/* Returns 0 if all values of a block are zero. Otherwise, for floats, returns the largest magnitude as bits (its
 * exponent is needed); for integers, all bits that are set in any value. */
static uint32_t bits_of_block(const struct omnireduce_worker *w, uint32_t block)
{
	const uint32_t *restrict values = (const uint32_t *)w->values + first_element(w, block);
	uint64_t count = block_elements(w, block);
	uint32_t found = 0;

	if (w->kind == OMNIREDUCE_INT32) {
		for (uint64_t i = 0; i < count; i++)
			found |= values[i];
	} else {
		for (uint64_t i = 0; i < count; i++) {
			uint32_t magnitude = values[i] & 0x7fffffff;

			found = magnitude > found ? magnitude : found;
		}
	}
	return found;
}

/* Finds this worker's next block of the column, from `block` on, that has a value. */
static void look_ahead(const struct omnireduce_worker *w, struct omnireduce_column *column, uint64_t block)
{
	for (; block < w->endpoint.chunks; block += w->window) {
		uint32_t bits = bits_of_block(w, (uint32_t)block);

		if (bits) {
			column->next = (uint32_t)block;
			column->exponent = w->kind == OMNIREDUCE_SCALED ? (uint8_t)(bits >> FLOAT_EXPONENT_SHIFT) : 0;
			return;
		}
	}
	column->next = NO_BLOCK;
	column->exponent = 0;
}

static void put_values(const struct omnireduce_worker *w, uint32_t block, uint32_t *payload)
{
	uint64_t first = first_element(w, block), count = block_elements(w, block);

	if (w->kind == OMNIREDUCE_SCALED) {
		quantise((const float *)w->values + first, count, w->exponents[block], w->value_bits, payload, 1);
	} else {
		copy_in_wire_order((const uint32_t *)w->values + first, count, payload);
	}
	memset(payload + count, 0, (w->lanes - count) * sizeof(*payload));
}

/* "A worker sends values where the block is its own next, and headers alone where that is a later one." */
static uint32_t put_block(struct omnireduce_worker *w, struct omnireduce_column *column, uint8_t *body)
{
	if (column->block != column->next) {
		w->blocks_bare++;
		return 0;
	}
	w->blocks_sent++;
	put_values(w, column->block, (uint32_t *)body);
	look_ahead(w, column, (uint64_t)column->block + w->window);
	return 4 * w->lanes;
}

/* Lays out the column's next packet. */
static void prepare(struct omnireduce_worker *w, uint32_t index, int64_t now_ns)
{
	struct omnireduce_column *column = &w->columns[index];
	uint8_t *frame = endpoint_row(&w->endpoint, index), *body = frame + OMNIREDUCE_HEADER_BYTES;
	int opening = column->kind == OMNIREDUCE_OPENING;
	uint32_t body_bytes = opening ? shapes_put(&w->shapes, body) : put_block(w, column, body);
	struct omnireduce_header header = {
		.version = OMNIREDUCE_VERSION,
		.kind = column->kind | (body_bytes ? 0 : OMNIREDUCE_BARE),
		.job = htobe16((uint16_t)w->job),
		.slot = htobe16((uint16_t)index),
		.exponent = column->exponent,
		.tag = htobe32(++column->tag),
		.block = htobe32(opening ? 0 : column->block),
		.next = htobe32(column->next),
	};

	memcpy(frame, &header, sizeof(header));
	outbox_set_length(&w->endpoint.outbox, index, OMNIREDUCE_HEADER_BYTES + body_bytes);
	column->has_values = !opening && body_bytes;
	/* Whoever sends headers alone may be answered with values. */
	column->pending.weight = !opening;
	recovery_prepare(w->endpoint.recoveries, &column->pending);
	fuse_add(w, index, now_ns);
}

/* Queues the OPENING of every column that the round uses; column 0 is always used. The caller has set the round's
 * fields. */
void omnireduce_begin(struct omnireduce_worker *w, int64_t now_ns)
{
	uint32_t used = w->endpoint.chunks < w->window ? w->endpoint.chunks : w->window;

	if (!used)
		used = 1;
	endpoint_begin(&w->endpoint, now_ns);
	w->ready_count = 0;
	/* Openings share frames that are longer than those whose round trips were measured. */
	w->endpoint.recoveries->hold_ns = w->endpoint.recoveries->srtt_ns;
	for (uint32_t index = 0; index < used; index++) {
		w->columns[index].block = index;
		w->columns[index].kind = OMNIREDUCE_OPENING;
		look_ahead(w, &w->columns[index], index);
		prepare(w, index, now_ns);
	}
}

/* Takes the sums of a block. body: the sums, or NULL if no worker has values for it. */
static void take_sums(struct omnireduce_worker *w, uint32_t block, const uint8_t *body)
{
	const uint32_t *restrict payload = (const uint32_t *)body;
	uint64_t first = first_element(w, block), count = block_elements(w, block);
	uint32_t *restrict out = (uint32_t *)w->out + first;

	if (!body)
		memset(out, 0, count * sizeof(*out));
	else if (w->kind == OMNIREDUCE_INT32)
		copy_in_wire_order(payload, count, out);
	else if (w->exponents[block] != EXPONENT_NOT_FINITE)
		/* Without a usable exponent, out keeps its contents (which may be the input): the caller is told about
		 * them. */
		dequantise(payload, count, w->exponents[block], w->value_bits, (float *)w->out + first, 1);
	if (w->sums && body)
		copy_in_wire_order(payload, count, (uint32_t *)w->sums + first);
	else if (w->sums)
		memset(w->sums + first, 0, count * sizeof(*w->sums));
	w->endpoint.chunks_done++;
}

/* "What lies between is zero at all workers." */
static void skip(struct omnireduce_worker *w, uint64_t block, uint32_t next)
{
	for (; block < w->endpoint.chunks && block < next; block += w->window) {
		w->exponents[block] = 0;
		take_sums(w, (uint32_t)block, NULL);
		w->blocks_skipped++;
	}
}

/* Prepares the column's next packet after an answer. Returns 0 if there is none. */
static int advance(struct omnireduce_worker *w, struct omnireduce_column *column, uint32_t next, uint8_t exponent)
{
	int opening = column->kind == OMNIREDUCE_OPENING;

	skip(w, (uint64_t)column->block + (opening ? 0 : w->window), next);
	if (next == NO_BLOCK)
		return 0;
	column->kind = (uint8_t)w->kind;
	column->block = next;
	w->exponents[next] = exponent;
	return 1;
}

static uint32_t body_bytes_of(const struct omnireduce_worker *w, uint8_t kind)
{
	if (kind == OMNIREDUCE_OPENING)
		return 2 * WIRE_SHAPE_BYTES;
	return kind & OMNIREDUCE_BARE ? 0 : 4 * w->lanes;
}

static int well_formed(const struct omnireduce_worker *w, const struct omnireduce_header *header, uint32_t length)
{
	uint8_t kind = header->kind ^ OMNIREDUCE_RESULT, values = kind & ~OMNIREDUCE_BARE;

	return header->version == OMNIREDUCE_VERSION &&
	       (kind == OMNIREDUCE_OPENING || values == OMNIREDUCE_INT32 || values == OMNIREDUCE_SCALED) &&
	       length == OMNIREDUCE_HEADER_BYTES + body_bytes_of(w, kind) && be16toh(header->job) == w->job &&
	       be16toh(header->slot) < w->window;
}

/* Returns whether a block can be the next of the column: it is in the column, ahead, and not beyond what this worker
 * announced. */
static int can_follow(const struct omnireduce_worker *w, const struct omnireduce_column *column, uint32_t next)
{
	uint32_t index = (uint32_t)(column - w->columns);
	int ahead = column->kind == OMNIREDUCE_OPENING || next > column->block;

	return next <= column->next && (next == NO_BLOCK || (ahead && next < w->endpoint.chunks && next % w->window == index));
}

/* Returns whether this answers what the column asked. If shapes differ, the rest of the packet means nothing. */
static int answers(const struct omnireduce_worker *w, const struct omnireduce_column *column,
		   const struct omnireduce_header *header)
{
	uint8_t kind = (header->kind ^ OMNIREDUCE_RESULT) & ~OMNIREDUCE_BARE;
	const uint8_t *body = (const uint8_t *)(header + 1);

	if (kind != column->kind)
		return 0;
	if (kind == OMNIREDUCE_OPENING)
		return !shapes_agree(&w->shapes, body) || can_follow(w, column, be32toh(header->next));
	return be32toh(header->block) == column->block && can_follow(w, column, be32toh(header->next));
}

/* Returns the column that awaits this result. If there is none, counts the packet and returns NULL. */
static struct omnireduce_column *awaiting(struct omnireduce_worker *w, const struct omnireduce_header *header,
					  uint32_t length)
{
	struct omnireduce_column *column;
	int fits;

	if (!well_formed(w, header, length)) {
		w->endpoint.malformed++;
		return NULL;
	}
	column = &w->columns[be16toh(header->slot)];
	fits = answers(w, column, header);
	return is_awaited(&w->endpoint, &column->pending, column->tag, be32toh(header->tag), fits) ? column : NULL;
}

/* Takes an awaited result's contents. Returns whether the round can go on. */
static int take_body(struct omnireduce_worker *w, struct omnireduce_column *column,
		     const struct omnireduce_header *header)
{
	const uint8_t *body = (const uint8_t *)(header + 1);

	if (column->kind == OMNIREDUCE_OPENING)
		return shapes_take(&w->shapes, body);
	take_sums(w, column->block, header->kind & OMNIREDUCE_BARE ? NULL : body);
	return 1;
}

/* Takes a datagram. Returns whether it was awaited. */
static int take(struct endpoint *e, int64_t now_ns, const uint8_t *datagram, uint32_t length, uint32_t peer)
{
	const struct omnireduce_header *header = (const struct omnireduce_header *)datagram; /* packed */
	struct omnireduce_worker *w = (struct omnireduce_worker *)e;
	struct omnireduce_column *column;
	uint32_t index;

	(void)peer; /* there is only one */
	if (e->error)
		return 0;
	column = awaiting(w, header, length);
	if (!column)
		return 0;
	index = (uint32_t)(column - w->columns);
	endpoint_answered(e, index, header->attempt, now_ns);
	e->recoveries->hold_ns = 0;
	if (!take_body(w, column, header))
		e->error = EPROTO;
	else if (advance(w, column, be32toh(header->next), header->exponent))
		prepare(w, index, now_ns);
	return 1;
}

uint32_t omnireduce_take(struct endpoint *e, int64_t now_ns, const struct rows *rows)
{
	return endpoint_take_answers(e, now_ns, rows, take);
}

/* Fills the queue with the rows to send now, new packets first; packets that are sent again have a datagram of their
 * own. Sets the deadline. Returns how many, or a negative errno. */
int omnireduce_poll(struct endpoint *e, int64_t now_ns)
{
	struct omnireduce_worker *w = (struct omnireduce_worker *)e;
	int failed;

	if (e->error)
		return -(int)e->error;
	fuse_send(w, now_ns);
	failed = endpoint_check_timers(e, now_ns);
	if (failed)
		return failed;
	endpoint_wake_at(e, fuse_deadline_ns(w));
	return endpoint_flush(e);
}
