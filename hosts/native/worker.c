/* One SwitchML worker, packet by packet. Clauses are those of docs/protocol.md. */
#include <endian.h>
#include <errno.h>
#include <stddef.h>
#include <string.h>

#include "quantise.h"
#include "wire.h"
#include "worker.h"

#define MAX_BACKOFF 4
/* How many packets are sent again after a silence. If nothing was lost, because somebody else is late, more
 * would only be in the way; if all was lost, the packets that follow these overtake the others. */
#define PROBES 8
/* A loss makes the worker forget 1 / 2^4 of how late results have been; RFC 8985 forgets it after 16 losses. */
#define FORGET_LATE 4

static uint64_t first_element(const struct worker *w, uint32_t chunk)
{
	return (uint64_t)chunk * w->lanes;
}

static uint64_t chunk_elements(const struct worker *w, uint32_t chunk)
{
	uint64_t left = w->elements - first_element(w, chunk);

	return left < w->lanes ? left : w->lanes;
}

static uint8_t own_exponent(const struct worker *w, uint64_t chunk)
{
	if (chunk >= w->chunks)
		return 0;
	return largest_exponent((const float *)w->values + first_element(w, (uint32_t)chunk),
				chunk_elements(w, (uint32_t)chunk));
}

static void put_values(const struct worker *w, const struct slot *slot, uint32_t *payload)
{
	uint64_t first = first_element(w, slot->chunk), count = chunk_elements(w, slot->chunk);

	if (slot->kind == WIRE_SCALED) {
		quantise((const float *)w->values + first, count, w->exponents[slot->chunk], w->value_bits, payload, 1);
	} else {
		const uint32_t *restrict values = (const uint32_t *)w->values + first;

		for (uint64_t i = 0; i < count; i++)
			payload[i] = wire_order(values[i]);
	}
	memset(payload + count, 0, (w->lanes - count) * sizeof(*payload));
}

/* "The agreed exponent of chunk c travels one window ahead, in the packet of chunk c - W." */
static uint8_t exponent_to_announce(const struct worker *w, const struct slot *slot)
{
	if (w->kind != WIRE_SCALED)
		return 0;
	return own_exponent(w, (uint64_t)slot->chunk + (slot->kind == WIRE_OPENING ? 0 : w->window));
}

static uint32_t body_bytes(const struct worker *w, uint8_t kind)
{
	return kind == WIRE_OPENING ? 2 * WIRE_SHAPE_BYTES : w->lanes * 4;
}

/* A worker's own shape is both the smallest and the largest it knows. */
static void put_shapes(const struct worker *w, uint8_t *body)
{
	memcpy(body, w->shape, WIRE_SHAPE_BYTES);
	memcpy(body + WIRE_SHAPE_BYTES, w->shape, WIRE_SHAPE_BYTES);
}

/* Lays out the slot's next packet and puts the slot on the queue. */
static void prepare(struct worker *w, uint32_t index)
{
	struct slot *slot = &w->slots[index];
	uint8_t *frame = w->frames + index * w->frame_stride;
	struct wire_header header = {
		.version = WIRE_VERSION,
		.kind = slot->kind,
		.job = htobe16((uint16_t)w->job),
		.slot = htobe16((uint16_t)index),
		.exponent = exponent_to_announce(w, slot),
		.tag = htobe32(++slot->tag),
	};

	memcpy(frame, &header, sizeof(header));
	slot->length = WIRE_HEADER_BYTES + body_bytes(w, slot->kind);
	if (slot->kind == WIRE_OPENING)
		put_shapes(w, frame + WIRE_HEADER_BYTES);
	else
		put_values(w, slot, (uint32_t *)(frame + WIRE_HEADER_BYTES));
	slot->waiting = QUEUED;
	slot->attempt = 0;
	w->in_flight++;
	w->queue[w->queued++] = index;
}

void worker_begin(struct worker *w, int64_t now_ns)
{
	uint32_t used = w->chunks < w->window ? w->chunks : w->window;

	if (!used)
		used = 1;
	w->chunks_done = 0;
	w->in_flight = 0;
	w->queued = 0;
	w->progress_ns = now_ns;
	for (uint32_t index = 0; index < used; index++) {
		w->slots[index].chunk = index;
		w->slots[index].kind = w->kind == WIRE_SCALED || index == 0 ? WIRE_OPENING : WIRE_INT32;
		prepare(w, index);
	}
}

static int64_t within(int64_t low, int64_t value, int64_t high)
{
	return value < low ? low : value > high ? high : value;
}

/* RFC 6298, section 2, in integers. */
static void take_sample(struct worker *w, int64_t rtt_ns)
{
	int64_t error = rtt_ns - w->srtt_ns, margin;

	if (!w->sampled) {
		w->srtt_ns = rtt_ns;
		w->rttvar_ns = rtt_ns >> 1;
		w->sampled = 1;
	} else {
		w->rttvar_ns += ((error < 0 ? -error : error) - w->rttvar_ns) >> 2;
		w->srtt_ns += error >> 3;
	}
	margin = 4 * w->rttvar_ns > w->slack_ns ? 4 * w->rttvar_ns : w->slack_ns;
	w->rto_ns = within(w->min_rto_ns, w->srtt_ns + margin, w->max_rto_ns);
}

static void take_lateness(struct worker *w, int64_t late_ns)
{
	late_ns = within(0, late_ns, w->srtt_ns);
	if (late_ns > w->late_ns)
		w->late_ns = late_ns;
}

static void take_values(struct worker *w, const struct slot *slot, const uint8_t *datagram)
{
	const uint32_t *restrict payload = (const uint32_t *)(datagram + WIRE_HEADER_BYTES);
	uint64_t first = first_element(w, slot->chunk), count = chunk_elements(w, slot->chunk);
	uint8_t exponent = w->exponents[slot->chunk];

	if (w->kind == WIRE_INT32) {
		uint32_t *restrict out = (uint32_t *)w->out + first;

		for (uint64_t i = 0; i < count; i++)
			out[i] = wire_order(payload[i]);
	} else if (exponent != EXPONENT_NOT_FINITE) {
		/* Otherwise out, which may be the input, keeps what the caller has to be told about. */
		dequantise(payload, count, exponent, w->value_bits, (float *)w->out + first, 1);
	}
	if (w->sums) {
		int32_t *restrict sums = w->sums + first;

		for (uint64_t i = 0; i < count; i++)
			sums[i] = (int32_t)wire_order(payload[i]);
	}
	w->chunks_done++;
}

/* Whether all workers reduce what this one does. If not, the round has no result. */
static int take_shapes(struct worker *w, const uint8_t *body)
{
	const uint8_t *smallest = body, *largest = body + WIRE_SHAPE_BYTES;

	if (!memcmp(smallest, w->shape, WIRE_SHAPE_BYTES) && !memcmp(largest, w->shape, WIRE_SHAPE_BYTES))
		return 1;
	memcpy(w->smallest, smallest, WIRE_SHAPE_BYTES);
	memcpy(w->largest, largest, WIRE_SHAPE_BYTES);
	w->disagreed = 1;
	return 0;
}

/* What follows on the slot once its packet has been answered. Returns 0 when nothing does. */
static int advance(struct worker *w, struct slot *slot, uint8_t exponent)
{
	if (slot->kind == WIRE_OPENING) {
		if (!w->chunks)
			return 0;
		slot->kind = (uint8_t)w->kind;
	} else if (w->chunks - slot->chunk > w->window) {
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

	return header->version == WIRE_VERSION && kind <= WIRE_OPENING &&
	       length == WIRE_HEADER_BYTES + body_bytes(w, (uint8_t)kind) &&
	       be16toh(header->job) == w->job && be16toh(header->slot) < w->window;
}

/* The slot whose awaited result this is, or NULL, counted. Tags compare modulo 2^32. */
static struct slot *awaiting(struct worker *w, const struct wire_header *header, uint32_t length)
{
	struct slot *slot;
	int32_t ahead;

	if (!well_formed(w, header, length)) {
		w->malformed++;
		return NULL;
	}
	slot = &w->slots[be16toh(header->slot)];
	ahead = (int32_t)(be32toh(header->tag) - slot->tag);
	if (ahead > 0 || (ahead == 0 && ((header->kind ^ WIRE_RESULT) != slot->kind || slot->waiting == QUEUED)))
		w->malformed++;
	else if (ahead == 0 && slot->waiting)
		return slot;
	else if (ahead == (slot->waiting ? -1 : 0))
		w->duplicates++;
	else
		w->late++;
	return NULL;
}

/* Something that was sent later has been answered. */
static int overtaken(const struct worker *w, uint64_t order)
{
	return order < w->answered_order;
}

/* Ends the slot's wait. The attempt that the result carries is that of the packet that made the switch send it:
 * as workers notice a loss at about the same time, it tells which transmission of this worker's it answers.
 * Returns the round trip, or -1. */
static int64_t answered(struct worker *w, struct slot *slot, uint8_t attempt, int64_t now_ns)
{
	int last = attempt == slot->attempt;
	uint64_t order = last ? slot->order : slot->first_order;

	slot->waiting = ANSWERED;
	w->in_flight--;
	w->progress_ns = now_ns;
	w->backoff = 0;
	if (overtaken(w, order)) {
		/* If it answers what everybody sent first, nothing was lost: it was late. */
		if (w->sampled && !attempt)
			take_lateness(w, now_ns - slot->first_sent_ns - w->srtt_ns);
		return -1;
	}
	if (attempt)
		w->late_ns -= w->late_ns >> FORGET_LATE;
	w->answered_order = order;
	if (last)
		return now_ns - slot->sent_ns;
	return attempt == 0 ? now_ns - slot->first_sent_ns : -1;
}

uint32_t worker_results(struct worker *w, int64_t now_ns, const uint8_t *rows, uint64_t row_bytes,
			const uint32_t *lengths, uint32_t count)
{
	uint32_t awaited = 0;
	int64_t longest_ns = -1;

	for (uint32_t i = 0; i < count; i++) {
		const uint8_t *datagram = rows + i * row_bytes;
		struct wire_header header;
		struct slot *slot;
		int64_t rtt_ns;

		memcpy(&header, datagram, sizeof(header));
		w->received++;
		w->bytes_received += WIRE_LOWER_HEADER_BYTES + lengths[i];
		slot = awaiting(w, &header, lengths[i]);
		if (!slot)
			continue;
		awaited++;
		rtt_ns = answered(w, slot, header.attempt, now_ns);
		longest_ns = rtt_ns > longest_ns ? rtt_ns : longest_ns;
		if (slot->kind != WIRE_OPENING)
			take_values(w, slot, datagram);
		else if (!take_shapes(w, datagram + WIRE_HEADER_BYTES))
			break;
		if (advance(w, slot, header.exponent))
			prepare(w, (uint32_t)(slot - w->slots));
	}
	/* One sample a batch: results that were gathered share their arrival time. */
	if (longest_ns >= 0)
		take_sample(w, longest_ns);
	return awaited;
}

static void transmit(struct worker *w, struct slot *slot, int64_t now_ns)
{
	slot->sent_ns = now_ns;
	slot->order = ++w->next_order;
	w->sent++;
	w->bytes_sent += WIRE_LOWER_HEADER_BYTES + slot->length;
}

/* How long an overtaken packet's result may take: as long as others' take, and what queues and a path that changes the
 * order make of that, as in RFC 8985, section 7. Never more than twice as long, or losses that hold all up would
 * measure as deviation and slow their own repair down. */
static int64_t gap_ns(const struct worker *w)
{
	int64_t margin = within(w->srtt_ns / 4, 4 * w->rttvar_ns, w->srtt_ns);

	margin = within(margin, w->late_ns, w->srtt_ns);
	return w->sampled ? within(w->min_gap_ns, w->srtt_ns + margin, w->max_rto_ns) : w->rto_ns;
}

/* Results come in the order of sending unless something was lost. So an overtaken packet has a timeout of its own;
 * any other one is due only after a silence, and only silence makes a timeout longer: as long as results come the
 * path is not overloaded. Where nothing was ever lost, silence means that somebody is late. */
static int64_t due_ns(const struct worker *w, const struct slot *slot)
{
	int64_t since = slot->sent_ns, timeout = gap_ns(w);

	if (!overtaken(w, slot->order)) {
		since = w->progress_ns > since ? w->progress_ns : since;
		since = w->probe_ns > since ? w->probe_ns : since;
		timeout = (w->lossy ? timeout : w->rto_ns) << w->backoff;
	}
	return since + (timeout < w->max_rto_ns ? timeout : w->max_rto_ns);
}

static void retransmit(struct worker *w, uint32_t index, int64_t now_ns)
{
	struct slot *slot = &w->slots[index];

	w->retransmitted++;
	slot->attempt += slot->attempt < UINT8_MAX;
	w->frames[index * w->frame_stride + offsetof(struct wire_header, attempt)] = (uint8_t)slot->attempt;
	transmit(w, slot, now_ns);
	w->queue[w->queued++] = index;
}

/* Sends again what is due and sets the deadline. */
static void check_timers(struct worker *w, int64_t now_ns)
{
	int64_t due;
	int probes = 0;

	for (uint32_t index = 0; index < w->window; index++) {
		struct slot *slot = &w->slots[index];

		if (!slot->waiting || due_ns(w, slot) > now_ns)
			continue;
		if (overtaken(w, slot->order))
			w->lossy = 1;
		else if (probes++ >= PROBES)
			continue;
		retransmit(w, index, now_ns);
	}
	if (probes) {
		w->timeouts += probes < PROBES ? probes : PROBES;
		w->probe_ns = now_ns;
		w->backoff += w->backoff < MAX_BACKOFF;
	}
	for (uint32_t index = 0; index < w->window; index++) {
		if (!w->slots[index].waiting)
			continue;
		due = due_ns(w, &w->slots[index]);
		w->deadline_ns = due < w->deadline_ns ? due : w->deadline_ns;
	}
}

int worker_poll(struct worker *w, int64_t now_ns)
{
	int count;

	if (w->disagreed)
		return -EPROTO;
	for (uint32_t i = 0; i < w->queued; i++) {
		struct slot *slot = &w->slots[w->queue[i]];

		transmit(w, slot, now_ns);
		slot->waiting = SENT;
		slot->first_sent_ns = now_ns;
		slot->first_order = slot->order;
	}
	w->deadline_ns = w->in_flight ? w->progress_ns + w->give_up_ns : INT64_MAX;
	if (w->deadline_ns <= now_ns)
		return -ETIMEDOUT;
	if (w->in_flight)
		check_timers(w, now_ns);
	count = (int)w->queued;
	w->queued = 0;
	return count;
}

uint32_t worker_layout(void)
{
	return (uint32_t)(sizeof(struct worker) << 16 | sizeof(struct slot));
}
