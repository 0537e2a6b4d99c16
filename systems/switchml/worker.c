/* One worker whose chunks switches sum, packet by packet. Clauses are those of docs/protocol.md. The worker's state is
 * declared in state.py. */
#include <endian.h>
#include <errno.h>
#include <string.h>

#include "endpoint.h"
#include "narrow.h"
#include "presence.h"
#include "quantise.h"
#include "shapes.h"
#include "state.h"
#include "unawaited.h"
#include "wire.h"

/* The bits of an integer in a contribution of a narrow kind; 0 for other kinds. */
static uint32_t narrow_bits(uint32_t kind)
{
	return kind >= WIRE_NARROW16 && kind <= WIRE_NARROW4 ? 16u >> (kind - WIRE_NARROW16) : 0;
}

/* Whether the round's floats travel as integers with an agreed exponent. */
static int is_scaled(const struct worker *w)
{
	return w->kind == WIRE_SCALED || narrow_bits(w->kind);
}

/* Whether a packet of this kind carries floats of 16 bits, which the switch adds as they are. */
static int is_halves(uint32_t kind)
{
	return kind == WIRE_HALF || kind == WIRE_BFLOAT;
}

/* A lane holds two floats of 16 bits, one or more sums of narrow integers, or one value of any other type. */
static uint64_t values_per_chunk(const struct worker *w)
{
	if (narrow_bits(w->kind))
		return narrow_values(w->lanes, narrow_bits(w->kind));
	return is_halves(w->kind) ? 2 * (uint64_t)w->lanes : w->lanes;
}

static uint64_t first_element(const struct worker *w, uint32_t chunk)
{
	return chunk * values_per_chunk(w);
}

static uint64_t chunk_elements(const struct worker *w, uint32_t chunk)
{
	uint64_t left = w->elements - first_element(w, chunk);

	return left < values_per_chunk(w) ? left : values_per_chunk(w);
}

static uint64_t value_bytes(const struct worker *w)
{
	return is_halves(w->kind) ? sizeof(uint16_t) : sizeof(uint32_t);
}

/* The worker's values of a chunk, until the next call. */
static const void *values_of(const struct worker *w, uint32_t chunk)
{
	const struct pieces *pieces = w->pieces;
	uint64_t first = first_element(w, chunk);

	if (!pieces)
		return (const uint8_t *)w->values + first * value_bytes(w);
	pieces->give(pieces->input, first, chunk_elements(w, chunk), pieces->values);
	return pieces->values;
}

/* Where the results of a chunk belong. */
static void *results_of(const struct worker *w, uint32_t chunk)
{
	return w->pieces ? w->pieces->results : (uint8_t *)w->out + first_element(w, chunk) * value_bytes(w);
}

/* Where the integer sums of a chunk belong; NULL if they are not wanted. */
static int32_t *sums_of(const struct worker *w, uint32_t chunk)
{
	if (w->pieces)
		return w->pieces->sums;
	return w->sums ? w->sums + first_element(w, chunk) : NULL;
}

/* Hands over the results of a chunk, unless they are in the arrays already or there are none. */
static void hand_over(const struct worker *w, uint32_t chunk)
{
	const struct pieces *pieces = w->pieces;

	if (pieces && !(is_scaled(w) && w->exponents[chunk] == EXPONENT_NOT_FINITE))
		pieces->take(pieces->output, first_element(w, chunk), chunk_elements(w, chunk), pieces->results,
			     pieces->sums);
}

static uint8_t own_exponent(const struct worker *w, uint64_t chunk)
{
	uint8_t largest;

	if (chunk >= w->endpoint.chunks)
		return 0;
	largest = largest_exponent(values_of(w, (uint32_t)chunk), chunk_elements(w, (uint32_t)chunk));
	return w->fixed_point.exponent && largest != EXPONENT_NOT_FINITE ? (uint8_t)w->fixed_point.exponent : largest;
}

/* Converts floats of 16 bits to or from big endian: both directions swap the bytes. */
static void turn_halves(const uint16_t *restrict from, uint64_t count, uint16_t *restrict to)
{
	for (uint64_t i = 0; i < count; i++)
		to[i] = htobe16(from[i]);
}

static void put_halves(const struct worker *w, const struct slot *slot, uint16_t *payload)
{
	uint64_t count = chunk_elements(w, slot->chunk);

	turn_halves(values_of(w, slot->chunk), count, payload);
	memset(payload + count, 0, (values_per_chunk(w) - count) * sizeof(*payload));
}

static void put_values(struct worker *w, const struct slot *slot, uint32_t *payload)
{
	uint64_t count = chunk_elements(w, slot->chunk);
	const void *values = values_of(w, slot->chunk);

	if (slot->kind == WIRE_SCALED && w->fixed_point.in_use) {
		quantise_fixed(&w->fixed_point, values, first_element(w, slot->chunk), count,
			       w->exponents[slot->chunk], w->value_bits, payload);
	} else if (slot->kind == WIRE_SCALED) {
		quantise(values, count, w->exponents[slot->chunk], w->value_bits, payload, 1);
	} else {
		copy_in_wire_order(values, count, payload);
	}
	memset(payload + count, 0, (w->lanes - count) * sizeof(*payload));
}

static void put_narrow(struct worker *w, const struct slot *slot, uint8_t *payload)
{
	uint32_t integers[NARROW_GROUP_VALUES_MAX], bits = narrow_bits(slot->kind);
	uint64_t first = first_element(w, slot->chunk), left = chunk_elements(w, slot->chunk);
	const float *from = values_of(w, slot->chunk);

	for (uint32_t lane = 0; lane < w->lanes; lane += NARROW_GROUP_LANES) {
		uint32_t lanes = w->lanes - lane < NARROW_GROUP_LANES ? w->lanes - lane : NARROW_GROUP_LANES;
		uint64_t values = narrow_values(lanes, bits), count = left < values ? left : values;

		quantise_fixed(&w->fixed_point, from, first, count, w->exponents[slot->chunk], w->value_bits, integers);
		narrow_pack(integers, count, values, bits, payload + 2 * (uint64_t)lane);
		from += count;
		first += count;
		left -= count;
	}
}

/* Whether a sum may lack workers. */
static int may_lack(const struct worker *w)
{
	return w->version == WIRE_VERSION_WITH_PRESENCE;
}

/* The largest exponent of all chunks of a slot, from its first one on. */
static uint8_t exponent_of_slot(const struct worker *w, uint64_t chunk)
{
	uint8_t largest = 0;

	for (; chunk < w->endpoint.chunks; chunk += w->window) {
		uint8_t own = own_exponent(w, chunk);

		largest = own > largest ? own : largest;
	}
	return largest;
}

/* "The agreed exponent of chunk c travels one window ahead, in the packet of chunk c - W." If sums may lack workers, it
 * travels in the OPENING, which never lacks a worker, and all chunks of the slot have the same exponent. */
static uint8_t exponent_to_announce(const struct worker *w, const struct slot *slot)
{
	if (!is_scaled(w))
		return 0;
	if (may_lack(w))
		return slot->kind == WIRE_OPENING ? exponent_of_slot(w, slot->chunk) : 0;
	return own_exponent(w, (uint64_t)slot->chunk + (slot->kind == WIRE_OPENING ? 0 : w->window));
}

static uint32_t body_bytes(const struct worker *w, uint8_t kind)
{
	if (kind == WIRE_OPENING)
		return 2 * WIRE_SHAPE_BYTES;
	return narrow_bits(kind) ? w->lanes * 2 : w->lanes * 4;
}

static uint32_t datagram_bytes(const struct worker *w, uint32_t kind)
{
	return w->header_bytes + body_bytes(w, (uint8_t)kind);
}

/* Lays out the slot's next packet and puts the slot on the queue. */
static void prepare(struct worker *w, uint32_t index)
{
	struct slot *slot = &w->slots[index];
	uint8_t *frame = endpoint_row(&w->endpoint, index);
	struct wire_header header = {
		.version = (uint8_t)w->version,
		.kind = slot->kind,
		.job = htobe16((uint16_t)w->job),
		.slot = htobe16((uint16_t)index),
		.exponent = exponent_to_announce(w, slot),
		.tag = htobe32(++slot->tag),
	};

	memcpy(frame, &header, sizeof(header));
	memset(frame + WIRE_HEADER_BYTES, 0, w->header_bytes - WIRE_HEADER_BYTES);
	slot->length = datagram_bytes(w, slot->kind);
	if (slot->kind == WIRE_OPENING)
		shapes_put(&w->shapes, frame + w->header_bytes);
	else if (is_halves(slot->kind))
		put_halves(w, slot, (uint16_t *)(frame + w->header_bytes));
	else if (narrow_bits(slot->kind))
		put_narrow(w, slot, frame + w->header_bytes);
	else
		put_values(w, slot, (uint32_t *)(frame + w->header_bytes));
	slot->pending.weight = slot->kind != WIRE_OPENING;
	endpoint_prepare(&w->endpoint, index);
}

/* Queues the first packet of every slot that the round uses. Slot 0 is always used, so that all workers meet there,
 * whatever they reduce. The caller has set the round's fields. */
void worker_begin(struct worker *w, int64_t now_ns)
{
	uint32_t used = w->endpoint.chunks < w->window ? w->endpoint.chunks : w->window;

	if (!used)
		used = 1;
	endpoint_begin(&w->endpoint, now_ns);
	for (uint32_t index = 0; index < used; index++) {
		w->slots[index].chunk = index;
		w->slots[index].kind = is_scaled(w) || may_lack(w) || index == 0 ? WIRE_OPENING : (uint8_t)w->kind;
		prepare(w, index);
	}
}

static void take_narrow(struct worker *w, const struct slot *slot, const uint8_t *payload)
{
	uint32_t sums[NARROW_GROUP_VALUES_MAX], bits = narrow_bits(slot->kind);
	uint64_t count = chunk_elements(w, slot->chunk);
	uint8_t exponent = w->exponents[slot->chunk];
	float *results = results_of(w, slot->chunk);
	int32_t *kept = sums_of(w, slot->chunk);

	for (uint64_t done = 0, some; done < count; done += some) {
		some = count - done < NARROW_GROUP_VALUES_MAX ? count - done : NARROW_GROUP_VALUES_MAX;
		narrow_sums(payload, done, some, bits, w->workers, sums);
		if (exponent != EXPONENT_NOT_FINITE)
			dequantise(sums, some, exponent, w->value_bits, results + done, 0);
		if (kept)
			memcpy(kept + done, sums, some * sizeof(*sums));
	}
	hand_over(w, slot->chunk);
	w->endpoint.chunks_done++;
}

static void take_values(struct worker *w, const struct slot *slot, const uint8_t *datagram)
{
	const uint32_t *restrict payload = (const uint32_t *)(datagram + w->header_bytes);
	uint64_t count = chunk_elements(w, slot->chunk);
	uint8_t exponent = w->exponents[slot->chunk];
	void *results = results_of(w, slot->chunk);
	int32_t *sums = sums_of(w, slot->chunk);

	if (is_halves(w->kind)) {
		turn_halves((const uint16_t *)payload, count, results);
	} else if (w->kind == WIRE_INT32) {
		copy_in_wire_order(payload, count, results);
	} else if (exponent == EXPONENT_NOT_FINITE) {
		/* Without a usable exponent, out keeps its contents (which may be the input): the caller is told about
		 * them. */
	} else if (may_lack(w)) {
		dequantise_partial(payload, count, exponent, w->value_bits,
				   presence_count(w->presence.of_chunks[slot->chunk]), w->workers, results);
	} else {
		dequantise(payload, count, exponent, w->value_bits, results, 1);
	}
	if (sums)
		copy_in_wire_order(payload, count, (uint32_t *)sums);
	hand_over(w, slot->chunk);
	w->endpoint.chunks_done++;
}

/* Prepares the slot's next packet after an answer. Returns 0 if there is none. */
static int advance(struct worker *w, struct slot *slot, uint8_t exponent)
{
	if (may_lack(w) && slot->kind != WIRE_OPENING)
		exponent = w->exponents[slot->chunk];
	if (slot->kind == WIRE_OPENING) {
		if (!w->endpoint.chunks)
			return 0;
		slot->kind = (uint8_t)w->kind;
	} else if (w->endpoint.chunks - slot->chunk > w->window) {
		slot->chunk += w->window;
	} else {
		return 0;
	}
	w->exponents[slot->chunk] = exponent;
	return 1;
}

static int well_formed(const struct worker *w, const struct wire_header *header, uint32_t length)
{
	uint32_t kind = header->kind ^ WIRE_RESULT;

	return header->version == w->version && (kind <= WIRE_HALF || kind == WIRE_BFLOAT) &&
	       length == datagram_bytes(w, kind) &&
	       be16toh(header->job) == w->job && be16toh(header->slot) < w->window;
}

/* A switch widens narrow integers before it adds them. */
static uint8_t kind_of_answer(uint8_t kind)
{
	return (narrow_bits(kind) ? WIRE_SCALED : kind) | WIRE_RESULT;
}

/* Takes a packet off the queue that has not been sent: the sum that it would contribute to is here already. */
static void skip(struct worker *w, struct slot *slot)
{
	uint32_t index = (uint32_t)(slot - w->slots), *queue = w->endpoint.queue, kept = 0;

	for (uint32_t i = 0; i < w->endpoint.queued; i++)
		if (queue[i] != index)
			queue[kept++] = queue[i];
	w->endpoint.queued = kept;
	w->presence.skipped++;
}

/* The same for sums that may lack workers: such a sum can come before the worker's own contribution. */
static struct slot *awaiting_partial(struct worker *w, const struct wire_header *header, const uint8_t *datagram)
{
	struct slot *slot = &w->slots[be16toh(header->slot)];
	int32_t ahead = (int32_t)(be32toh(header->tag) - slot->tag);
	int fits = header->kind == kind_of_answer(slot->kind);
	uint32_t count = presence_count(presence_of(datagram));

	if (!count || count > w->workers || (ahead > 0 && !slot->pending.waiting)) {
		w->endpoint.malformed++;
		return NULL;
	}
	if (ahead > 0) {
		w->presence.ahead++;
		return NULL;
	}
	if (ahead == 0 && fits && slot->pending.waiting == QUEUED && slot->kind != WIRE_OPENING) {
		skip(w, slot);
		return slot;
	}
	return is_awaited(&w->endpoint, &slot->pending, slot->tag, be32toh(header->tag), fits) ? slot : NULL;
}

/* The slot that awaits this result. If there is none, counts the packet and returns NULL. */
static struct slot *awaiting(struct worker *w, const struct wire_header *header, const uint8_t *datagram,
			     uint32_t length)
{
	struct slot *slot;
	int fits;

	if (!well_formed(w, header, length)) {
		w->endpoint.malformed++;
		return NULL;
	}
	if (may_lack(w))
		return awaiting_partial(w, header, datagram);
	slot = &w->slots[be16toh(header->slot)];
	fits = header->kind == kind_of_answer(slot->kind);
	return is_awaited(&w->endpoint, &slot->pending, slot->tag, be32toh(header->tag), fits) ? slot : NULL;
}

/* Ends the wait of the slot's packet. The result names the attempt of the packet that made the switch send it. Workers
 * notice a loss at about the same time, so it answers this worker's transmission of the same attempt. */
static void end_wait(struct worker *w, struct slot *slot, const struct wire_header *header, int64_t now_ns)
{
	if (slot->pending.waiting == QUEUED)
		recovery_skipped(w->endpoint.recoveries, &slot->pending, now_ns);
	else
		endpoint_answered(&w->endpoint, (uint32_t)(slot - w->slots), header->attempt, now_ns);
}

/* Takes what an awaited result brings. Returns whether the round can go on. */
static int take_body(struct worker *w, const struct slot *slot, const uint8_t *datagram)
{
	if (may_lack(w) && slot->kind != WIRE_OPENING)
		presence_take(&w->presence, slot->chunk, presence_of(datagram), w->workers);
	if (narrow_bits(slot->kind))
		take_narrow(w, slot, datagram + w->header_bytes);
	else if (slot->kind != WIRE_OPENING)
		take_values(w, slot, datagram);
	else
		return shapes_take(&w->shapes, datagram + w->header_bytes);
	return 1;
}

/* Takes a datagram. Returns whether it was awaited. */
static int take(struct endpoint *e, int64_t now_ns, const uint8_t *datagram, uint32_t length, uint32_t peer)
{
	struct worker *w = (struct worker *)e;
	struct wire_header header;
	struct slot *slot;

	(void)peer; /* there is only one */
	if (e->error)
		return 0;
	memcpy(&header, datagram, sizeof(header));
	slot = awaiting(w, &header, datagram, length);
	if (!slot)
		return 0;
	end_wait(w, slot, &header, now_ns);
	if (!take_body(w, slot, datagram))
		e->error = EPROTO;
	else if (advance(w, slot, header.exponent))
		prepare(w, (uint32_t)(slot - w->slots));
	return 1;
}

uint32_t worker_take(struct endpoint *e, int64_t now_ns, const struct rows *rows)
{
	return endpoint_take_answers(e, now_ns, rows, take);
}

int worker_poll(struct endpoint *e, int64_t now_ns)
{
	return endpoint_poll(e, now_ns);
}
