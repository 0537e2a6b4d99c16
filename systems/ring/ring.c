/* One worker of a ring, packet by packet: README.md. Its state is declared in state.py. */
#include <endian.h>
#include <errno.h>
#include <string.h>

#include "endpoint.h"
#include "quantise.h"
#include "ring_wire.h"
#include "state.h"

#define NOT_LAID_OUT UINT32_MAX
#define MAX_DELAY UINT8_MAX
/* How often an endpoint tells its neighbours that shapes differ before it assumes that they know. */
#define TELLINGS 8

/* The rows after those of data. */
enum own_rows { ACKNOWLEDGEMENT_ROW, PREVIOUS_ROW, TELL_ROW };

/* Whether an incoming packet is of this round, counted modulo 2^16. */
enum { ROUND_BEFORE = -1, THIS_ROUND, NEXT_ROUND };

static uint32_t data_bytes(const struct ring *r)
{
	return RING_HEADER_BYTES + 4 * r->lanes;
}

static int complete(const struct ring *r)
{
	const struct endpoint *e = &r->endpoint;

	return e->chunks_done == e->chunks && r->acknowledged_below == e->chunks;
}

static int is_taken(const struct ring *r, uint32_t sequence)
{
	return r->taken[sequence / 64] >> sequence % 64 & 1;
}

/* The elements that a packet holds. */
struct span {
	uint64_t first;
	uint64_t count;
};

static uint64_t segment_start(const struct ring *r, uint32_t segment)
{
	return r->elements * segment / r->workers;
}

/* Returns chunk `chunk` of the segment that worker `rank` sends in step `step`. */
static struct span span_of(const struct ring *r, uint32_t rank, uint32_t sequence)
{
	uint32_t step = sequence / r->segment_chunks, chunk = sequence % r->segment_chunks;
	uint32_t segment = (uint32_t)(((uint64_t)rank + 2 * (uint64_t)r->workers - step) % r->workers);
	uint64_t first = segment_start(r, segment) + (uint64_t)chunk * r->lanes;
	uint64_t end = segment_start(r, segment + 1);
	uint64_t left = first < end ? end - first : 0;

	return (struct span){ first, left < r->lanes ? left : r->lanes };
}

static struct ring_header header_of(const struct ring *r, uint8_t kind)
{
	return (struct ring_header){
		.version = RING_VERSION,
		.kind = kind,
		.job = htobe16((uint16_t)r->job),
		.session = htobe32(r->session),
		.digest = htobe32(r->digest),
		.round = htobe16((uint16_t)r->round),
	};
}

/* Lays out packet `sequence` and puts it on the queue. */
static void prepare(struct ring *r, uint32_t sequence)
{
	uint32_t row = sequence % r->window;
	struct ring_header header = header_of(r, RING_DATA);
	struct span span = span_of(r, r->rank, sequence);
	const uint32_t *source = (sequence < r->segment_chunks ? r->values : r->out) + span.first;
	uint32_t *restrict payload = (uint32_t *)(endpoint_row(&r->endpoint, row) + RING_HEADER_BYTES);

	header.sequence = htobe32(sequence);
	memcpy(endpoint_row(&r->endpoint, row), &header, sizeof(header));
	for (uint64_t i = 0; i < span.count; i++)
		payload[i] = wire_order(source[i]);
	memset(payload + span.count, 0, (r->lanes - span.count) * sizeof(*payload));
	r->packets[row].sequence = sequence;
	endpoint_prepare(&r->endpoint, row);
}

/* Returns the first packet that the window does not admit. */
static uint32_t window_end(const struct ring *r)
{
	uint64_t end = (uint64_t)r->acknowledged_below + r->window;

	return end < r->endpoint.chunks ? (uint32_t)end : r->endpoint.chunks;
}

/* Lays out the packets whose values are here: packet k passes on what came in packet k - chunks. */
static void prepare_ready(struct ring *r, uint32_t first, uint32_t end)
{
	for (uint32_t k = first; k < end; k++)
		if (k < r->segment_chunks || is_taken(r, k - r->segment_chunks))
			prepare(r, k);
}

/* Two digests differ. Tells the neighbours of the one that is not this worker's, or of the first if neither is. */
static void disagree(struct ring *r, uint32_t digest, uint32_t differs, int64_t now_ns)
{
	if (r->disagreed || r->failed)
		return;
	r->disagreed = 1;
	r->other_digest = digest == r->digest ? differs : digest;
	r->told = 0;
	r->to_tell = 1u << r->next | 1u << r->previous;
	r->tellings_left = TELLINGS;
	r->tell_ns = now_ns;
	r->endpoint.queued = 0;
}

/* Takes a packet's values: a step of reduce-scatter adds them, a step of all-gather replaces. */
static void take_values(struct ring *r, uint32_t sequence, const uint8_t *datagram)
{
	const uint32_t *restrict payload = (const uint32_t *)(datagram + RING_HEADER_BYTES);
	struct span span = span_of(r, r->rank + r->workers - 1, sequence);
	const uint32_t *values = r->values + span.first;
	uint32_t *out = r->out + span.first;

	if (sequence / r->segment_chunks >= r->workers - 1) {
		for (uint64_t i = 0; i < span.count; i++)
			out[i] = wire_order(payload[i]);
	} else if (r->is_float) {
		for (uint64_t i = 0; i < span.count; i++) {
			uint32_t bits = wire_order(payload[i]);
			float sum, own;

			memcpy(&sum, &bits, sizeof(sum));
			memcpy(&own, &values[i], sizeof(own));
			sum += own;
			memcpy(&out[i], &sum, sizeof(sum));
		}
	} else {
		for (uint64_t i = 0; i < span.count; i++)
			out[i] = wire_order(payload[i]) + values[i];
	}
}

static void mark_taken(struct ring *r, uint32_t sequence)
{
	r->taken[sequence / 64] |= (uint64_t)1 << sequence % 64;
	r->endpoint.chunks_done++;
	if (sequence >= r->highest_taken)
		r->highest_taken = sequence + 1;
	while (r->taken_below < r->highest_taken && is_taken(r, r->taken_below))
		r->taken_below++;
}

static void note_echo(struct ring *r, uint32_t sequence, uint8_t attempt, int64_t now_ns)
{
	r->echo = sequence;
	r->echo_attempt = attempt;
	r->echo_ns = now_ns;
}

/* Notes that an acknowledgement is due: every few packets, and at once after a gap, a repeated packet or the last one. */
static void owe(struct ring *r, uint32_t sequence, uint8_t attempt, uint32_t expected, int64_t now_ns)
{
	if (!r->owed++)
		r->owed_since_ns = now_ns;
	if (sequence > expected || attempt || r->endpoint.chunks_done == r->endpoint.chunks)
		r->owed_at_once = 1;
	note_echo(r, sequence, attempt, now_ns);
}

/* Takes a packet that is here already: its acknowledgement was lost or is on its way. */
static void take_duplicate(struct ring *r, uint32_t sequence, uint8_t attempt, int64_t now_ns)
{
	r->endpoint.duplicates++;
	r->owed_at_once = 1;
	note_echo(r, sequence, attempt, now_ns);
}

/* Takes a packet with data. Returns whether it was awaited. */
static int take_data(struct ring *r, const struct ring_header *header, const uint8_t *datagram, uint32_t length,
		     int64_t now_ns)
{
	uint32_t sequence = be32toh(header->sequence), expected = r->highest_taken;

	if (length != data_bytes(r) || sequence >= r->endpoint.chunks ||
	    (sequence >= r->taken_below && sequence - r->taken_below >= r->window)) {
		r->endpoint.malformed++;
		return 0;
	}
	if (is_taken(r, sequence)) {
		take_duplicate(r, sequence, header->attempt, now_ns);
		return 0;
	}
	take_values(r, sequence, datagram);
	mark_taken(r, sequence);
	owe(r, sequence, header->attempt, expected, now_ns);
	r->heard_ns = now_ns;
	if (sequence + r->segment_chunks < window_end(r))
		prepare(r, sequence + r->segment_chunks);
	return 1;
}

static uint8_t *early_row(const struct ring *r, uint32_t sequence)
{
	return r->early + sequence * r->endpoint.outbox.frame_stride;
}

/* Keeps the next round's first packets until it begins. */
static void keep_early(struct ring *r, const struct ring_header *header, const uint8_t *datagram, uint32_t length)
{
	uint32_t sequence = be32toh(header->sequence);

	if (length != data_bytes(r) || sequence >= r->window) {
		r->endpoint.malformed++;
	} else if (r->early_set[sequence]) {
		r->endpoint.duplicates++;
	} else {
		memcpy(early_row(r, sequence), datagram, length);
		r->early_set[sequence] = 1;
		r->early_packets++;
	}
}

/* A peer that is still in the round before lacks only acknowledgements: otherwise this round could not have begun. */
static void answer_previous(struct ring *r, const struct ring_header *header, uint32_t length)
{
	if (length == data_bytes(r) && be32toh(header->digest) == r->previous_digest && be32toh(header->sequence) < r->previous_packets) {
		r->endpoint.duplicates++;
		r->owed_previous = 1;
	} else {
		r->endpoint.late++;
	}
}

/* Returns a packet if it has been sent, otherwise NULL. */
static struct ring_packet *sent_packet(const struct ring *r, uint32_t sequence)
{
	struct ring_packet *packet = &r->packets[sequence % r->window];

	return packet->sequence == sequence && packet->pending.waiting != QUEUED ? packet : NULL;
}

static uint64_t bitmap_word(const uint8_t *datagram, uint32_t index)
{
	uint64_t word;

	memcpy(&word, datagram + RING_HEADER_BYTES + index * sizeof(word), sizeof(word));
	return le64toh(word);
}

/* Returns whether an acknowledgement names only packets that have been sent. */
static int credible(const struct ring *r, uint32_t cumulative, const uint8_t *datagram, uint32_t words)
{
	uint32_t end = window_end(r);

	for (uint32_t k = r->acknowledged_below; k < cumulative; k++)
		if (!sent_packet(r, k))
			return 0;
	for (uint32_t i = 0; i < words; i++) {
		for (uint64_t word = bitmap_word(datagram, i); word; word &= word - 1) {
			uint64_t k = cumulative + 64 * (uint64_t)i + (uint64_t)__builtin_ctzll(word);

			if (k >= end || !sent_packet(r, (uint32_t)k))
				return 0;
		}
	}
	return 1;
}

/* What an acknowledgement says of the packet that it names. */
struct echo {
	uint32_t sequence;
	uint8_t attempt;
	int64_t delay_ns;
	int64_t rtt_ns; /* the round trip, once it is known */
};

/* Takes the acknowledgement of one packet. Returns whether the packet was waiting. */
static uint32_t acknowledge(struct ring *r, uint32_t sequence, struct echo *echo, int64_t now_ns)
{
	struct pending *p = &r->packets[sequence % r->window].pending;
	int attempt = p->attempt ? UNKNOWN_ATTEMPT : 0;
	int64_t rtt_ns;

	if (p->waiting != SENT)
		return 0;
	if (sequence == echo->sequence)
		attempt = echo->attempt;
	rtt_ns = recovery_answered(r->endpoint.recoveries, p, attempt, now_ns);
	if (sequence == echo->sequence)
		echo->rtt_ns = rtt_ns;
	return 1;
}

static uint32_t acknowledge_all(struct ring *r, uint32_t cumulative, const uint8_t *datagram, uint32_t words,
				struct echo *echo, int64_t now_ns)
{
	uint32_t fresh = 0;

	for (uint32_t k = r->acknowledged_below; k < cumulative; k++)
		fresh += acknowledge(r, k, echo, now_ns);
	for (uint32_t i = 0; i < words; i++)
		for (uint64_t word = bitmap_word(datagram, i); word; word &= word - 1)
			fresh += acknowledge(r, cumulative + 64 * i + (uint32_t)__builtin_ctzll(word), echo, now_ns);
	return fresh;
}

static void advance(struct ring *r)
{
	uint32_t end = window_end(r);

	while (r->acknowledged_below < end) {
		const struct ring_packet *packet = sent_packet(r, r->acknowledged_below);

		if (!packet || packet->pending.waiting)
			break;
		r->acknowledged_below++;
	}
	prepare_ready(r, end, window_end(r));
}

/* Takes an acknowledgement. Returns whether it was awaited. */
static int take_acknowledgement(struct ring *r, const struct ring_header *header, const uint8_t *datagram,
				uint32_t length, int64_t now_ns)
{
	uint32_t cumulative = be32toh(header->cumulative), words = (length - RING_HEADER_BYTES) / 8;
	struct echo echo = { be32toh(header->sequence), header->attempt,
			     (int64_t)header->delay * RING_DELAY_UNIT_NS, -1 };

	if ((length - RING_HEADER_BYTES) % 8 || words > (r->window + 63) / 64) {
		r->endpoint.malformed++;
		return 0;
	}
	if (cumulative < r->acknowledged_below) {
		r->endpoint.late++;
		return 0;
	}
	if (!credible(r, cumulative, datagram, words)) {
		r->endpoint.malformed++;
		return 0;
	}
	if (!acknowledge_all(r, cumulative, datagram, words, &echo, now_ns)) {
		r->endpoint.duplicates++;
		return 0;
	}
	r->heard_ns = now_ns;
	if (echo.rtt_ns >= 0)
		recovery_sample(r->endpoint.recoveries, echo.rtt_ns > echo.delay_ns ? echo.rtt_ns - echo.delay_ns : 0);
	advance(r);
	return 1;
}

/* Takes a MISMATCH: shapes differ between the sender and this worker, or between two others. */
static void take_mismatch(struct ring *r, const struct ring_header *header, uint32_t length, uint32_t peer, int ahead,
			  int64_t now_ns)
{
	uint32_t digest = be32toh(header->digest), differs = be32toh(header->cumulative);

	if (length != RING_HEADER_BYTES || digest == differs) {
		r->endpoint.malformed++;
	} else if (ahead == NEXT_ROUND) {
		r->early_digest = digest;
		r->early_other = differs;
	} else {
		disagree(r, digest, differs, now_ns);
		r->told |= 1u << peer;
	}
}

/* Returns whether a packet belongs to this system, job and session. If not, counts it. */
static int ours(struct ring *r, const struct ring_header *header, uint32_t length, uint32_t peer)
{
	uint32_t sender = header->kind == RING_DATA ? r->previous : r->next;

	if (length < RING_HEADER_BYTES || header->version != RING_VERSION || header->kind < RING_DATA ||
	    header->kind > RING_MISMATCH || be16toh(header->job) != r->job || r->workers == 1 ||
	    (header->kind != RING_MISMATCH && peer != sender) || (peer != r->next && peer != r->previous)) {
		r->endpoint.malformed++;
		return 0;
	}
	if (be32toh(header->session) != r->session) {
		r->endpoint.late++;
		return 0;
	}
	return 1;
}

/* Takes a packet of another round. */
static void take_other_round(struct ring *r, const struct ring_header *header, const uint8_t *datagram,
			     uint32_t length, uint32_t peer, int ahead, int64_t now_ns)
{
	if (ahead > NEXT_ROUND || (ahead == NEXT_ROUND && header->kind == RING_ACKNOWLEDGEMENT))
		r->endpoint.malformed++;
	else if (ahead == NEXT_ROUND && header->kind == RING_MISMATCH)
		take_mismatch(r, header, length, peer, ahead, now_ns);
	else if (ahead == NEXT_ROUND)
		keep_early(r, header, datagram, length);
	else if (ahead == ROUND_BEFORE && header->kind == RING_DATA)
		answer_previous(r, header, length);
	else
		r->endpoint.late++;
}

static int take(struct endpoint *e, int64_t now_ns, const uint8_t *datagram, uint32_t length, uint32_t peer)
{
	struct ring *r = (struct ring *)e;
	struct ring_header header;
	int ahead;

	memcpy(&header, datagram, sizeof(header));
	if (!ours(r, &header, length, peer))
		return 0;
	ahead = (int16_t)(uint16_t)(be16toh(header.round) - r->round);
	if (ahead != THIS_ROUND || !r->begun) {
		take_other_round(r, &header, datagram, length, peer, ahead, now_ns);
		return 0;
	}
	if (r->endpoint.done && (header.kind == RING_MISMATCH || be32toh(header.digest) != r->digest)) {
		/* Workers cannot disagree about a round that is over. */
		r->endpoint.malformed++;
		return 0;
	}
	if (header.kind == RING_MISMATCH) {
		take_mismatch(r, &header, length, peer, ahead, now_ns);
		return 0;
	}
	if (r->disagreed) {
		/* This neighbour does not know of the disagreement yet. */
		r->to_tell |= 1u << peer;
		return 0;
	}
	if (be32toh(header.digest) != r->digest) {
		disagree(r, be32toh(header.digest), r->digest, now_ns);
		return 0;
	}
	if (r->failed) {
		r->endpoint.late++;
		return 0;
	}
	if (header.kind == RING_DATA)
		return take_data(r, &header, datagram, length, now_ns);
	return take_acknowledgement(r, &header, datagram, length, now_ns);
}

uint32_t ring_take(struct endpoint *e, int64_t now_ns, const struct rows *rows)
{
	return endpoint_take(e, now_ns, rows, take);
}

static void take_early(struct ring *r, int64_t now_ns)
{
	for (uint32_t i = 0; i < r->window; i++) {
		if (!r->early_set[i])
			continue;
		r->early_set[i] = 0;
		take(&r->endpoint, now_ns, early_row(r, i), data_bytes(r), r->previous);
	}
}

/* Begins the round whose fields are set. */
void ring_begin(struct ring *r, int64_t now_ns)
{
	endpoint_begin(&r->endpoint, now_ns);
	r->begun = 1;
	r->endpoint.done = !r->endpoint.chunks;
	r->taken_below = r->highest_taken = r->acknowledged_below = 0;
	r->owed = r->owed_at_once = r->owed_previous = 0;
	r->heard_ns = now_ns;
	for (uint32_t i = 0; i < r->window; i++) {
		r->packets[i].sequence = NOT_LAID_OUT;
		r->packets[i].pending.waiting = ANSWERED;
	}
	prepare_ready(r, 0, r->segment_chunks < window_end(r) ? r->segment_chunks : window_end(r));
	take_early(r, now_ns);
	if (r->early_digest != r->early_other)
		disagree(r, r->early_digest, r->early_other, now_ns);
	r->early_other = r->early_digest;
}

/* Sends an acknowledgement or a MISMATCH. */
static void send_short(struct ring *r, uint32_t row, const struct ring_header *header, uint32_t length)
{
	memcpy(endpoint_row(&r->endpoint, row), header, sizeof(*header));
	outbox_set_length(&r->endpoint.outbox, row, length);
	endpoint_queue(&r->endpoint, row);
	endpoint_count_sent(&r->endpoint, row);
}

static void send_acknowledgement(struct ring *r, uint32_t row, const struct ring_header *header, uint32_t words)
{
	uint32_t length = RING_HEADER_BYTES + 8 * words;

	send_short(r, row, header, length);
	r->acknowledgements++;
	r->acknowledgement_bytes += WIRE_LOWER_HEADER_BYTES + length;
}

/* Writes which packets from taken_below on have come. Returns how many words that takes. */
static uint32_t put_bitmap(const struct ring *r, uint8_t *bitmap)
{
	uint32_t words = (r->highest_taken - r->taken_below + 63) / 64, shift = r->taken_below % 64;

	for (uint32_t i = 0; i < words; i++) {
		const uint64_t *from = r->taken + r->taken_below / 64 + i;
		uint64_t word = from[0] >> shift;

		if (shift)
			word |= from[1] << (64 - shift);
		word = htole64(word);
		memcpy(bitmap + i * sizeof(word), &word, sizeof(word));
	}
	return words;
}

static uint8_t held_back(const struct ring *r, int64_t now_ns)
{
	int64_t units = (now_ns - r->echo_ns) / RING_DELAY_UNIT_NS;

	return (uint8_t)(units < MAX_DELAY ? units : MAX_DELAY);
}

static void acknowledge_this_round(struct ring *r, int64_t now_ns)
{
	struct ring_header header = header_of(r, RING_ACKNOWLEDGEMENT);
	uint32_t row = r->window + ACKNOWLEDGEMENT_ROW;

	header.sequence = htobe32(r->echo);
	header.attempt = (uint8_t)r->echo_attempt;
	header.delay = held_back(r, now_ns);
	header.cumulative = htobe32(r->taken_below);
	send_acknowledgement(r, row, &header, put_bitmap(r, endpoint_row(&r->endpoint, row) + RING_HEADER_BYTES));
	r->owed = r->owed_at_once = 0;
}

static void acknowledge_round_before(struct ring *r)
{
	struct ring_header header = header_of(r, RING_ACKNOWLEDGEMENT);

	header.round = htobe16((uint16_t)(r->round - 1));
	header.digest = htobe32(r->previous_digest);
	header.sequence = header.cumulative = htobe32(r->previous_packets);
	send_acknowledgement(r, r->window + PREVIOUS_ROW, &header, 0);
	r->owed_previous = 0;
}

static void send_acknowledgements(struct ring *r, int64_t now_ns)
{
	int64_t due_ns = r->owed_since_ns + r->acknowledge_after_ns;

	if (r->owed_at_once || r->owed >= r->acknowledge_every || (r->owed && due_ns <= now_ns))
		acknowledge_this_round(r, now_ns);
	if (r->owed)
		endpoint_wake_at(&r->endpoint, due_ns);
}

static void tell(struct ring *r, uint32_t peers)
{
	struct ring_header header = header_of(r, RING_MISMATCH);

	header.cumulative = htobe32(r->other_digest);
	for (uint32_t peer = 0; peer < 2; peer++)
		if (peers >> peer & 1)
			send_short(r, r->window + TELL_ROW + peer, &header, RING_HEADER_BYTES);
}

/* Tells the neighbours of the disagreement until they confirm, or often enough; then the round fails. After that, only
 * neighbours that seem not to know are told. */
static int poll_disagreed(struct ring *r, int64_t now_ns)
{
	uint32_t all = 1u << r->next | 1u << r->previous;

	if (r->failed) {
		tell(r, r->to_tell);
		r->to_tell = 0;
		return 0;
	}
	if (r->tell_ns > now_ns && (r->told & all) != all) {
		endpoint_wake_at(&r->endpoint, r->tell_ns);
		return 0;
	}
	if (r->tellings_left < TELLINGS && (!r->tellings_left || (r->told & all) == all)) {
		r->failed = 1;
		r->to_tell = 0;
		return -EPROTO;
	}
	tell(r, all);
	r->tellings_left--;
	r->tell_ns = now_ns + r->endpoint.recoveries->min_rto_ns;
	endpoint_wake_at(&r->endpoint, (r->told & all) == all ? now_ns : r->tell_ns);
	return 0;
}

static int check_timers(struct ring *r, int64_t now_ns)
{
	struct recovery *recovery = r->endpoint.recoveries;

	if (r->endpoint.done || complete(r))
		return 0;
	if (recovery_gives_up(recovery, r->heard_ns, now_ns)) {
		r->failed = 1;
		return -ETIMEDOUT;
	}
	if (recovery->in_flight)
		endpoint_send_again(&r->endpoint, 0, now_ns);
	endpoint_wake_at(&r->endpoint, recovery->deadline_ns);
	return 0;
}

/* Fills the queue with the rows to send now and sets the deadline. Returns how many, or, once, -ETIMEDOUT or -EPROTO. */
int ring_poll(struct endpoint *e, int64_t now_ns)
{
	struct ring *r = (struct ring *)e;
	int error = 0, count;

	e->deadline_ns = INT64_MAX;
	if (r->disagreed) {
		error = poll_disagreed(r, now_ns);
	} else if (r->failed) {
		e->queued = 0;
	} else {
		endpoint_send_first(e, now_ns);
		error = check_timers(r, now_ns);
		if (!error)
			send_acknowledgements(r, now_ns);
	}
	if (!error && r->begun && !e->done && !r->disagreed && !r->failed && complete(r) && !r->owed) {
		/* Nothing follows the packets that are sent now, so nobody has to wait for more. */
		e->done = 1;
		endpoint_wake_at(e, now_ns);
	}
	/* This is sent in a round that has failed, too: the predecessor learns of the failure only after its previous
	 * round. */
	if (!error && r->owed_previous)
		acknowledge_round_before(r);
	count = endpoint_flush(e);
	return error ? error : count;
}
