/* The inner steps of systems/libra/: a worker's state, and a server's, packet by packet.
 *
 * They know neither sockets nor clocks, and allocate nothing. Python owns all memory; the structures are mirrored in
 * layout.py, whose users compare the sizes. README.md.
 */
#ifndef AGGLAB_LIBRA_H
#define AGGLAB_LIBRA_H

#include <stdint.h>

#include "libra_wire.h"
#include "recovery.h"

/* What a job's worker and its servers both know, and both count. */
struct libra_common {
	uint32_t job;
	uint32_t session;
	uint32_t workers;
	uint32_t servers;
	uint32_t lanes;
	uint32_t slots; /* packets that a worker has in flight to one server */
	uint32_t row_bytes;
	uint32_t queued;
	uint8_t *frames; /* rows of the outbox, row_bytes apart */
	uint32_t *lengths;
	uint32_t *peers;
	uint32_t *queue;

	uint64_t sent;
	uint64_t received;
	uint64_t duplicates;
	uint64_t late;
	uint64_t malformed;
	uint64_t bytes_sent;
	uint64_t bytes_received;
};

/* What a worker asks a server for in a round, one kind after the other. */
enum { HOT, PUSH, PULL, LEARN, PHASES };

/* A request that a slot has in flight, or the last that was answered. Item i of a phase has slot i % slots. */
struct libra_request {
	struct pending pending;
	uint32_t item;
	uint32_t spare;
};

/* A worker's round with one server. Keys and values are in the machine's order; groups of `lanes` keys are padded. */
struct libra_share {
	const uint64_t *hot_keys;
	const uint32_t *hot_values;
	uint32_t *hot_sums;
	const uint64_t *cold_keys;
	const uint32_t *cold_values;
	uint32_t *cold_sums;
	uint64_t *learnt;
	uint64_t cold_pairs;
	uint32_t items[PHASES]; /* items of each phase; LEARN has 1 until the first answer tells the number */
	uint32_t pages_max;
	uint32_t phase; /* PHASES: the round is over */
	uint32_t answered;
	uint32_t spare;
};

struct libra_worker {
	struct libra_common common;
	struct recovery *recoveries; /* one for each server and phase: answers of one phase say nothing about another */
	int64_t *rtts_ns;	     /* for each recovery, the round trip of the answers that came together; -1: none */
	struct libra_request *requests; /* slot k of server s has request and row k * servers + s */
	struct libra_share *shares;
	uint32_t aggregator; /* the switch's index among the peers; NO_AGGREGATOR: everything goes to servers */
	uint32_t direct_after; /* after this many attempts a request goes to its server, not to the switch */
	uint32_t digest;
	uint32_t round;
	uint32_t begun;
	uint32_t disagreed;
	uint32_t other_digest;
	uint32_t items;
	uint32_t items_done;
	uint32_t rank;
	uint64_t directly; /* requests that went past the switch because it had not answered */
	uint64_t bytes_again; /* bytes of frames that were sent again */
	int64_t hold_ns; /* how long a server may delay the answer to a first PULL or LEARN */
	int64_t deadline_ns;
};

#define NO_AGGREGATOR UINT32_MAX

/* A server's state of one round. A finished round keeps its answers for one more round. Key tables use open addressing. */
struct libra_round {
	uint64_t *keys;
	uint32_t *values;
	uint16_t *counts; /* how many workers pushed the key; 0: the table entry is free */
	uint32_t *chunks; /* for each worker, how many packets it pushes; 0: not known */
	uint32_t *arrived;
	uint16_t *pairs;  /* for each worker and chunk, PULLED and 1 + its number of keys; 0: it has not come */
	uint32_t *places; /* for each worker, chunk and pair, the key's index in the table */
	uint64_t *group_keys;
	uint64_t *parts;       /* for each group and rank: the workers of the part with this lowest rank; 0: none */
	uint32_t *part_values; /* for each group, rank and lane; rank 0 has the sums of a whole group */
	uint8_t *whole;	       /* for each group, whether all workers' values are in it */
	uint32_t round;
	uint32_t digest;
	uint32_t used;
	uint32_t keys_used;
	uint32_t groups; /* 0: none yet */
	uint32_t workers_done;
};

struct libra_server {
	struct libra_common common;
	uint32_t index;
	uint32_t capacity;   /* entries of a key table, a power of two */
	uint32_t keys_max;   /* most keys that a table may hold */
	uint32_t chunks_max; /* most chunks that a worker may push */
	uint32_t groups_max;
	uint32_t racks;
	uint64_t low_key; /* the server's range of keys is low_key to high_key, both included */
	uint64_t high_key;
	struct libra_round *rounds; /* two, by the round's parity */
	struct libra_round *store;  /* its table holds the sum of all rounds for each key; NULL: not kept */
	uint64_t *rack_workers;	    /* ranks behind each switch that sums */
	uint32_t *rack_peer;	    /* the peer to which packets for all these workers are sent */
	uint8_t *asked;		    /* for each row, ON_QUEUE and AGAIN */
	uint32_t *waiting;	    /* for each row, 1 + the chunk whose PULL waits for others; 0: none */
	uint8_t *waiting_attempt;
	uint64_t *hot_keys; /* the list that LEARN asks for */
	uint8_t *learnt;    /* for each worker and page, whether it has been sent */
	uint32_t hot_pages;
	uint32_t choose; /* the round is over; if it was a sample, the list of hot keys has to be made anew */
	uint32_t round;
	uint32_t begun;
	uint32_t disagreed;
	uint32_t other_digest;
	uint32_t hot_round; /* the sampled round that the list was made from */
	uint32_t spare;
	uint64_t answered_again;
	uint64_t bytes_again; /* bytes of frames that were sent again */
	uint64_t groups_whole; /* groups summed and given to all workers */
	uint64_t sums;	       /* SUM packets taken */
	uint64_t singles;      /* HOT packets taken that no switch had summed */
	uint64_t cold_pairs;   /* pairs of PUSH packets taken */
};

/* Begins the round whose shares are set. */
void libra_worker_begin(struct libra_worker *w, int64_t now_ns);

/* Takes count datagrams, row_bytes apart, from these peers. Returns how many were awaited. */
uint32_t libra_worker_datagrams(struct libra_worker *w, int64_t now_ns, const uint8_t *rows, uint64_t row_bytes,
				const uint32_t *lengths, const uint32_t *peers, uint32_t count);
uint32_t libra_server_datagrams(struct libra_server *s, const uint8_t *rows, uint64_t row_bytes,
				const uint32_t *lengths, const uint32_t *peers, uint32_t count);

/* Fills the queue with the rows to send now. Returns how many; a worker's may be -ETIMEDOUT or -EPROTO. */
int libra_worker_poll(struct libra_worker *w, int64_t now_ns);
int libra_server_poll(struct libra_server *s);

uint32_t libra_worker_layout(void); /* sizeof(struct libra_worker) << 16 | sizeof(struct libra_share) */
uint32_t libra_server_layout(void); /* sizeof(struct libra_server) << 16 | sizeof(struct libra_round) */

#endif
