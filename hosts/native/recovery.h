/* Loss recovery, the same for all systems: when a packet that waits for an answer is sent again, and when to give up.
 * docs/hosts.md, "When a packet is taken for lost", says why.
 *
 * Knows neither packets nor peers: a system has a struct pending for each packet that can wait at once, tells when it
 * was sent and answered, and asks which are due. Both structures are mirrored in hosts/recovery.py.
 */
#ifndef AGGLAB_RECOVERY_H
#define AGGLAB_RECOVERY_H

#include <stdint.h>

#include "histogram.h"

#define UNKNOWN_ATTEMPT (-1)
#define PROMPT_SHARE_BITS 16

enum { ANSWERED, QUEUED, SENT }; /* pending.waiting */

/* A packet that waits for its answer, or the last one that did. */
struct pending {
	int64_t sent_ns;       /* last transmission */
	int64_t first_sent_ns; /* first transmission */
	uint64_t order;        /* number of the last transmission, counting all transmissions */
	uint64_t first_order;  /* number of the first transmission */
	uint16_t attempt;      /* how often it was sent again, at most 255: as in its datagram */
	uint8_t waiting;       /* state of the wait; there cannot be an answer while it is QUEUED */
	uint8_t weight;        /* set by the owner: in proportion to the bytes of packet and answer; 0: it opens a round */
	uint8_t spare[4];
};

struct recovery {
	int64_t initial_rto_ns;
	int64_t min_rto_ns;
	int64_t min_gap_ns;
	int64_t max_rto_ns;
	int64_t slack_ns; /* smallest allowance above the smoothed round trip, since answers are received in batches */
	int64_t give_up_ns;
	int64_t hold_ns; /* how long a peer may delay an answer on purpose */
	int64_t delays_ns; /* no answer comes sooner: the links' delays alone take as long */
	int64_t others_ns; /* how long links need for a packet of each worker, and for its answer; 0: workers go in step */
	int64_t ask_ns;  /* after this time a peer answers a repeated request; 0: it does not */

	int64_t srtt_ns;
	int64_t rttvar_ns;
	int64_t rto_ns;
	int64_t longest_ns;  /* the longest round trip, which is forgotten slowly */
	int64_t late_ns;     /* how late overtaken answers have been that were not lost */
	int64_t progress_ns; /* when the last awaited answer came */
	int64_t probe_ns;    /* when packets were last sent again after a silence */
	int64_t deadline_ns; /* when there is something to do even without an answer */
	uint64_t next_order;
	uint64_t answered_order; /* the latest transmission known to be answered */

	uint32_t in_flight; /* packets that wait for an answer */
	uint32_t sampled;   /* a round trip has been measured */
	uint32_t lossy;     /* answers have left gaps */
	uint32_t backoff;   /* how often the timeout after a silence has been doubled */
	uint32_t weight;    /* the largest weight of an answered packet; the round trip is that of such packets */
	uint32_t loss_probes; /* loss probes sent since the last answer */
	uint32_t prompt_share; /* the share of packets answered without being sent again, in 2^-PROMPT_SHARE_BITS */
	uint32_t spare;

	uint64_t retransmitted;
	uint64_t timeouts; /* retransmissions after a silence */
	uint64_t asked;    /* retransmissions that asked for an answer after ask_ns */
	struct histogram latencies; /* from first transmissions to answers */
};

/* Begins a round: no packet waits. What was learnt about the path is kept. */
void recovery_begin(struct recovery *r, int64_t now_ns);

/* Called when the packet is laid out: it will wait for an answer. */
void recovery_prepare(struct recovery *r, struct pending *p);

/* Called when the packet is sent for the first time. */
void recovery_send(struct recovery *r, struct pending *p, int64_t now_ns);

/* Ends the wait. attempt: the attempt that was answered, or UNKNOWN_ATTEMPT. Returns the round trip, or -1 if it is not
 * known. */
int64_t recovery_answered(struct recovery *r, struct pending *p, int attempt, int64_t now_ns);

/* Ends the wait of a packet that was never sent, because its answer is here. Returns -1: the round trip is not known. */
int64_t recovery_skipped(struct recovery *r, struct pending *p, int64_t now_ns);

/* Takes a measured round trip. Called once per batch, since answers that were received together share their arrival
 * time. */
void recovery_sample(struct recovery *r, int64_t rtt_ns);

/* Returns when an awaited answer last came from any peer, given the `count` recoveries for all peers: one slow peer is
 * no reason to give up while others answer. */
int64_t recovery_latest_progress_ns(const struct recovery *recoveries, uint32_t count);

/* Returns whether to give up now. since_ns: when something was last heard. If not, deadline_ns is set to when to. */
int recovery_gives_up(struct recovery *r, int64_t since_ns, int64_t now_ns);

/* Looks through count packets, stride bytes apart. Counts those that are due as sent again, and writes their indices to
 * queue. Moves deadline_ns forward if another packet is due before it. Returns how many are due. */
uint32_t recovery_repeat(struct recovery *r, struct pending *first, uint64_t stride, uint32_t count, int64_t now_ns,
			 uint32_t *queue);

uint32_t recovery_layout(void); /* sizeof(struct recovery) << 16 | sizeof(struct pending) */

#endif
