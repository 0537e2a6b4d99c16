/* struct pipeline: one instance of the program. Included after the generated layout, which defines struct packet,
 * struct store and struct registers_<i>, and the numbers TABLES, PROFILES, COUNTERS, METERS, VALUE_SETS,
 * REGISTER_GROUPS, LEVELS, PENDING. */
#ifndef P4NATIVE_STATE_H
#define P4NATIVE_STATE_H

#include <pthread.h>

#define DIGEST_ROOM (1u << 18)
#define MESSAGE_ROOM (1u << 20)

struct counter {
	uint64_t packets, bytes;
};

/* A packet that is being processed: its header fields, and room for wide fields that have left their first place. */
struct work {
	struct packet packet;
	struct store store;
};

/* A recirculated packet that waits for its next pass. */
struct pending {
	struct work kept;
	uint32_t len;
	uint8_t frame[MAX_RECIRCULATED];
};

/* Registers of one size: their elements with the same index lie together. */
struct register_group {
	uint32_t stride, size;
};

struct register_shape {
	uint32_t group, offset, bits;
	bool native; /* a host-order integer of the smallest width that holds it, else big endian bytes */
};

enum drop_reason {
	DROP_INGRESS,
	DROP_EGRESS,
	DROP_NO_GROUP,
	DROP_NO_SESSION,
	DROP_PRIORITY,
	DROP_NO_ROOM,
	DROP_RECIRCULATION_FULL,
	DROP_LOOP,
	DROP_TOO_LONG,
	DROP_DIGEST,
	DROP_REASONS
};

const char *const pl_drop_names[] = {
	"ingress",  "egress", "no_group", "no_session", "priority", "no_room", "recirculation_full",
	"loop", "too_long", "digest", NULL,
};

struct collected {
	uint8_t *data;
	uint64_t used, room;
	bool failed;
};

struct pipeline {
	pthread_mutex_t lock;
	uint64_t random;
	uint64_t now_us;
	const struct pl_sink *sink;
	uint32_t passes;
	uint16_t drop_port;
	uint32_t priority_queues;
	struct table table[TABLES + 1];
	struct profile profile[PROFILES + 1];
	struct counter *counter[COUNTERS + 1];
	struct meter *meter[METERS + 1];
	struct value_set value_set[VALUE_SETS + 1];
	char *messages; /* lines that wait to be taken, where the program says anything */
	uint32_t messages_used;
	uint8_t *digests; /* samples that wait to be taken, as pl_take_digests gives them */
	uint32_t digests_used;
	uint8_t *register_memory[REGISTER_GROUPS + 1];
	uint8_t *registers[REGISTER_GROUPS + 1]; /* the registers, from the first cache line on */
	struct replicas_page *groups[GROUPS / PAGE_LISTS];
	struct replicas_page *sessions[SESSIONS / PAGE_LISTS];
	uint64_t drops[DROP_REASONS];
	struct csum_memo csum_memo; /* for a frame, or for the store of a level whose copies are being processed */
	struct csum_memo known_sum; /* of the last bytes of the frame that is processed */
	struct collected collected;
	struct work kept; /* what a resubmitted packet carries into its next pass */
	struct work work[LEVELS];
	struct pending *pending;
	uint32_t pending_first, pending_count;
	uint8_t scratch[SCRATCH_BYTES + 8];
};

/* Begins a checksum. A run outside the store of the packet's own level does not change before csum_forget. */
static inline struct csum csum_begin(struct pipeline *p, const struct packet *k)
{
	const struct work *w = (const struct work *)k;

	return (struct csum){
		.memo = &p->csum_memo,
		.known = &p->known_sum,
		.own = (const uint8_t *)&w->store,
		.own_len = sizeof(w->store),
	};
}

static inline void csum_forget(struct pipeline *p)
{
	p->csum_memo.run_len = 0;
}

#endif
