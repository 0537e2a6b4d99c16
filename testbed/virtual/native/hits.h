/* The chunks of which a packet was lost, changed or held up, and whose retransmissions that explains. `struct explained` is
 * mirrored in testbed/virtual/causes.py, which puts chunks in and explains everything else.
 */
#ifndef AGGLAB_HITS_H
#define AGGLAB_HITS_H

#include <stdint.h>

/* A set of chunks. */
struct hits;

/* The retransmissions of one agent that are explained. */
struct explained {
	struct hits *hits;
	int64_t *mended_ns; /* when a packet of the job was last sent again for such a reason */
	uint64_t count;
	uint16_t job;
	uint16_t spare[3];
};

struct hits *hits_new(void);
void hits_free(struct hits *hits);

/* Returns 0 where there is no memory. */
int hits_add(struct hits *hits, uint16_t job, uint16_t slot, uint32_t tag);

/* Counts a retransmission if its chunk was hit, or the chunk that all agents must have finished before it. Returns 0 for
 * all others. */
int hits_explain(struct explained *explained, uint16_t slot, uint32_t tag, uint16_t slot_before, uint32_t tag_before,
		 int64_t now_ns);

#endif
