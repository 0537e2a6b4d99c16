/* When a packet is taken for lost: docs/hosts.md. */
#include "prefetch.h"
#include "recovery.h"

#define MAX_BACKOFF 4
/* How many packets are sent again after a silence. If another worker is late and nothing was lost, more packets would
 * only fill the links. If everything was lost, answers to these few mark the others as overtaken. */
#define PROBES 8
/* How many loss probes, single packets, are sent again after 1/32, 1/16, ... 1/2 of the first timeout, if packets have
 * been lost. */
#define LOSS_PROBES 5
/* A loss makes the worker forget 1 / 2^4 of how late answers have been; RFC 8985 forgets it after 16 losses. */
#define FORGET_LATE 4
/* Each round trip makes the worker forget 1 / 2^8 of what the longest one took more. */
#define FORGET_LONGEST 8
#define PROMPT_HISTORY 4
/* A packet is sent again to ask for the answer after 1 + 1 / 2^3 of the time that the peer needs, since the peer may
 * have learnt of the matter later than this host sent the packet. Each further wait is twice as long. */
#define ASK_LATER 3
#define ASK_BACKOFF_MAX 4

static int64_t within(int64_t low, int64_t value, int64_t high)
{
	return value < low ? low : value > high ? high : value;
}

void recovery_begin(struct recovery *r, int64_t now_ns)
{
	r->in_flight = 0;
	r->progress_ns = now_ns;
}

void recovery_prepare(struct recovery *r, struct pending *p)
{
	p->waiting = QUEUED;
	p->attempt = 0;
	r->in_flight++;
}

static void transmit(struct recovery *r, struct pending *p, int64_t now_ns)
{
	p->sent_ns = now_ns;
	p->order = ++r->next_order;
}

void recovery_send(struct recovery *r, struct pending *p, int64_t now_ns)
{
	transmit(r, p, now_ns);
	p->waiting = SENT;
	p->first_sent_ns = now_ns;
	p->first_order = p->order;
}

/* RFC 6298, section 2, in integers. */
void recovery_sample(struct recovery *r, int64_t rtt_ns)
{
	int64_t error = rtt_ns - r->srtt_ns, margin;

	if (!r->sampled) {
		r->srtt_ns = r->longest_ns = rtt_ns;
		r->rttvar_ns = rtt_ns >> 1;
		r->sampled = 1;
	} else {
		r->rttvar_ns += ((error < 0 ? -error : error) - r->rttvar_ns) >> 2;
		r->srtt_ns += error >> 3;
	}
	if (rtt_ns > r->longest_ns)
		r->longest_ns = rtt_ns;
	else
		r->longest_ns -= (r->longest_ns - rtt_ns) >> FORGET_LONGEST;
	margin = 4 * r->rttvar_ns > r->slack_ns ? 4 * r->rttvar_ns : r->slack_ns;
	r->rto_ns = within(r->min_rto_ns, r->srtt_ns + margin, r->max_rto_ns);
}

static void take_lateness(struct recovery *r, int64_t late_ns)
{
	late_ns = within(0, late_ns, r->srtt_ns);
	if (late_ns > r->late_ns)
		r->late_ns = late_ns;
}

/* Returns whether a later transmission has been answered. */
static int overtaken(const struct recovery *r, uint64_t order)
{
	return order < r->answered_order;
}

/* When a larger packet has been answered, the round trip of smaller ones is forgotten and no longer measured. */
static int64_t measured(struct recovery *r, const struct pending *p, int64_t rtt_ns)
{
	if (p->weight < r->weight)
		return -1;
	if (p->weight > r->weight)
		r->sampled = 0;
	r->weight = p->weight;
	return rtt_ns;
}

/* Averages over about the last 2^4 answers. */
static void note_prompt(struct recovery *r, int prompt)
{
	r->prompt_share -= r->prompt_share >> PROMPT_HISTORY;
	if (prompt)
		r->prompt_share += (1u << PROMPT_SHARE_BITS) >> PROMPT_HISTORY;
}

/* If the answer names the attempt, the transmission is known; otherwise it was the first one or a later one. */
int64_t recovery_answered(struct recovery *r, struct pending *p, int attempt, int64_t now_ns)
{
	int last = attempt == p->attempt;
	uint64_t order = last ? p->order : p->first_order;

	p->waiting = ANSWERED;
	r->in_flight--;
	r->progress_ns = now_ns;
	histogram_add(&r->latencies, now_ns - p->first_sent_ns);
	note_prompt(r, !p->attempt);
	r->backoff = 0;
	r->loss_probes = 0;
	if (overtaken(r, order)) {
		/* The answer to the first attempt came after all: nothing was lost, the answer was late. */
		if (r->sampled && !attempt)
			take_lateness(r, now_ns - p->first_sent_ns - r->srtt_ns);
		return -1;
	}
	if (attempt)
		r->late_ns -= r->late_ns >> FORGET_LATE;
	r->answered_order = order;
	if (last)
		return measured(r, p, now_ns - p->sent_ns);
	return attempt == 0 ? measured(r, p, now_ns - p->first_sent_ns) : -1;
}

int64_t recovery_skipped(struct recovery *r, struct pending *p, int64_t now_ns)
{
	p->waiting = ANSWERED;
	r->in_flight--;
	r->progress_ns = now_ns;
	r->backoff = 0;
	return -1;
}

/* Returns whether round trips of packets of this weight are known. */
static int is_measured(const struct recovery *r, const struct pending *p)
{
	return r->sampled && p->weight <= r->weight;
}

/* How long to wait for answers, by whether round trips of packets as large are known. The same for many packets, so it
 * is computed once for all of them. */
struct timeouts {
	int64_t gap_ns[2];     /* of an overtaken packet, since it was sent */
	int64_t silence_ns[2]; /* of any other packet, since the last answer */
};

/* How long an overtaken packet's answer may take: a round trip, and an allowance for queues and for paths that reorder,
 * as in RFC 8985, section 7. A quarter of a round trip is added to how late answers have been, since the next may be
 * later still: overtaken packets are not measured, so the smoothed round trip does not follow queues that grow. The
 * allowance is at most another round trip: otherwise delays that losses cause would count as deviation, and slow the
 * repair of these losses down. The round trips of smaller packets say nothing about a larger one. */
static int64_t gap_ns(const struct recovery *r, int measured)
{
	int64_t margin = r->srtt_ns / 4 + r->late_ns;

	if (margin < 4 * r->rttvar_ns)
		margin = 4 * r->rttvar_ns;
	margin = within(0, margin, r->srtt_ns);
	return measured ? within(r->min_gap_ns, r->srtt_ns + margin, r->max_rto_ns) : r->rto_ns;
}

/* How long a silence lasts after packets have been lost. If it is likely that all packets that wait were lost, as the
 * last few of a round may be, it is as long as for one that was overtaken. Otherwise answers are late: packets that were
 * held back until a loss was repaired now fill the queues together. */
static int64_t silence_ns(const struct recovery *r, int64_t gap)
{
	uint64_t expected_answers = (uint64_t)r->in_flight * r->prompt_share >> PROMPT_SHARE_BITS;

	if (expected_answers <= PROBES)
		return gap;
	return r->rto_ns > r->longest_ns ? r->rto_ns : r->longest_ns;
}

/* Answers come in the order of sending unless something was lost. So an overtaken packet has a timeout of its own. Any
 * other packet is due only after a silence. Only silences lengthen the timeout, because the path is not overloaded
 * while answers come. If no packet was ever lost, a silence means that another worker is late, or that others have as
 * many packets on the same links: round trips that were measured while they were silent say nothing about that. */
static struct timeouts timeouts_of(const struct recovery *r)
{
	struct timeouts timeouts;

	for (int measured = 0; measured < 2; measured++) {
		int64_t gap = gap_ns(r, measured);
		int64_t unhurt = r->rto_ns + r->in_flight * r->others_ns;
		int64_t silence = ((r->lossy ? silence_ns(r, gap) : unhurt) + r->hold_ns) << r->backoff;

		timeouts.gap_ns[measured] = gap < r->max_rto_ns ? gap : r->max_rto_ns;
		timeouts.silence_ns[measured] = silence < r->max_rto_ns ? silence : r->max_rto_ns;
	}
	return timeouts;
}

/* By how much longer than a measured round trip the packet's may take: at most in proportion to the weights, since a
 * part of each round trip does not depend on them. */
static int64_t longer_ns(const struct recovery *r, const struct pending *p)
{
	return is_measured(r, p) || !r->weight ? 0 : r->srtt_ns * (p->weight - r->weight) / r->weight;
}

static int64_t due_ns(const struct recovery *r, const struct timeouts *timeouts, const struct pending *p)
{
	int measured = is_measured(r, p);
	int64_t since = p->sent_ns + longer_ns(r, p);

	if (overtaken(r, p->order))
		return since + timeouts->gap_ns[measured];
	since = r->progress_ns > since ? r->progress_ns : since;
	since = r->probe_ns > since ? r->probe_ns : since;
	return since + timeouts->silence_ns[measured];
}

/* When to ask a peer that answers repeated requests after a time. It does not answer packets of weight 0 like this. */
static int64_t ask_due_ns(const struct recovery *r, const struct pending *p)
{
	int64_t first = p->first_sent_ns + r->ask_ns + (r->ask_ns >> ASK_LATER);
	int64_t next = r->ask_ns << (p->attempt < ASK_BACKOFF_MAX ? p->attempt : ASK_BACKOFF_MAX);

	if (!r->ask_ns || !p->weight)
		return INT64_MAX;
	return p->sent_ns < first ? first : p->sent_ns + (next < r->max_rto_ns ? next : r->max_rto_ns);
}

/* When a packet is sent again as a loss probe. Only openings have been answered, so nobody knows how long its answer
 * takes, and packets have been lost before. The timeout after a silence has to be long, since other workers
 * may be late. But a single answer is enough to mark everything that was sent before as overtaken. */
static int64_t loss_probe_ns(const struct recovery *r, const struct pending *p)
{
	int64_t since = p->first_sent_ns > r->progress_ns ? p->first_sent_ns : r->progress_ns;

	if (!r->lossy || is_measured(r, p) || r->weight || r->loss_probes == LOSS_PROBES)
		return INT64_MAX;
	return since + r->delays_ns + ((r->initial_rto_ns - r->delays_ns) >> (LOSS_PROBES - r->loss_probes));
}

static void retransmit(struct recovery *r, struct pending *p, int64_t now_ns)
{
	r->retransmitted++;
	p->attempt += p->attempt < UINT8_MAX;
	transmit(r, p, now_ns);
}

int64_t recovery_latest_progress_ns(const struct recovery *recoveries, uint32_t count)
{
	int64_t latest = recoveries[0].progress_ns;

	for (uint32_t i = 1; i < count; i++)
		if (recoveries[i].progress_ns > latest)
			latest = recoveries[i].progress_ns;
	return latest;
}

int recovery_gives_up(struct recovery *r, int64_t since_ns, int64_t now_ns)
{
	r->deadline_ns = since_ns + r->give_up_ns;
	return r->deadline_ns <= now_ns;
}

static struct pending *at(struct pending *first, uint64_t stride, uint32_t index)
{
	return (struct pending *)((uint8_t *)first + index * stride);
}

/* Returns the index of the first waiting packet; count if there is none. */
static uint32_t first_waiting(struct pending *first, uint64_t stride, uint32_t count)
{
	uint32_t index = 0;

	while (index < count && at(first, stride, index)->waiting != SENT)
		index++;
	return index;
}

/* Sends a loss probe if one is due. Returns the number of packets sent, 0 or 1. */
static uint32_t send_loss_probe(struct recovery *r, struct pending *p, int64_t now_ns)
{
	if (loss_probe_ns(r, p) > now_ns)
		return 0;
	r->loss_probes++;
	r->timeouts++;
	retransmit(r, p, now_ns);
	return 1;
}

/* When the packet is sent again at the soonest, unless as a loss probe. */
static int64_t soonest_ns(const struct recovery *r, const struct timeouts *timeouts, const struct pending *p)
{
	int64_t due = due_ns(r, timeouts, p), ask = ask_due_ns(r, p);

	return due < ask ? due : ask;
}

/* The soonest of all packets that wait; now where one became due while others were sent again, as the first gap makes a
 * silence shorter. */
static int64_t soonest_of_all(const struct recovery *r, struct pending *first, uint64_t stride, uint32_t count,
			      int64_t now_ns)
{
	struct timeouts timeouts = timeouts_of(r);
	int64_t soonest = INT64_MAX;

	for (uint32_t index = 0; index < count; index++) {
		const struct pending *p = at(first, stride, index);

		if (p->waiting == SENT)
			soonest = within(now_ns, soonest_ns(r, &timeouts, p), soonest);
	}
	return soonest;
}

uint32_t recovery_repeat(struct recovery *r, struct pending *first, uint64_t stride, uint32_t count, int64_t now_ns,
			 uint32_t *queue)
{
	struct timeouts timeouts = timeouts_of(r);
	uint32_t queued = 0, probe;
	int64_t soonest = INT64_MAX;
	int probes = 0;

	/* The processor cannot guess which packets wait, and would stop at each one that is not in the cache. */
	prefetch(first, count * stride);
	probe = first_waiting(first, stride, count);
	if (probe < count && send_loss_probe(r, at(first, stride, probe), now_ns))
		queue[queued++] = probe;

	for (uint32_t index = 0; index < count; index++) {
		struct pending *p = at(first, stride, index);
		int64_t due;

		if (p->waiting != SENT)
			continue;
		due = soonest_ns(r, &timeouts, p);
		if (due > now_ns) {
			soonest = due < soonest ? due : soonest;
			continue;
		}
		if (ask_due_ns(r, p) <= now_ns) {
			r->asked++;
		} else if (overtaken(r, p->order)) {
			r->lossy = 1;
			timeouts = timeouts_of(r);
		} else if (probes++ >= PROBES) {
			continue;
		}
		retransmit(r, p, now_ns);
		queue[queued++] = index;
	}
	if (probes) {
		r->timeouts += probes < PROBES ? probes : PROBES;
		r->probe_ns = now_ns;
		r->backoff += r->backoff < MAX_BACKOFF;
	}
	if (queued)
		soonest = soonest_of_all(r, first, stride, count, now_ns);
	if (probe < count)
		soonest = within(now_ns, loss_probe_ns(r, at(first, stride, probe)), soonest);
	r->deadline_ns = soonest < r->deadline_ns ? soonest : r->deadline_ns;
	return queued;
}
