/* Loss recovery, the same for all systems: when a packet that waits for an answer is sent again, and when to give up.
 * docs/hosts.md, "When a packet is taken for lost", says why.
 *
 * Knows neither packets nor peers: a system has a struct pending for each packet that can wait at once, tells when it
 * was sent and answered, and asks which are due. hosts/recovery.py declares both structures.
 */
#ifndef AGGLAB_RECOVERY_H
#define AGGLAB_RECOVERY_H

#include <stdint.h>

#include "histogram.h"

#define UNKNOWN_ATTEMPT (-1)
#define PROMPT_SHARE_BITS 16

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

#endif
