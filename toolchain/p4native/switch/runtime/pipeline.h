/* What a compiled P4 program offers to whoever drives it.
 *
 * One shared object holds one program; struct pipeline is one instance of it. Control functions take the
 * instance's lock themselves; pl_process does not: its caller holds pl_lock over a batch of packets, and
 * calls pl_unlock between batches, so that control calls get their turn. After pl_new nothing in the packet
 * path allocates, logs or trusts a length from the wire.
 */
#ifndef P4NATIVE_PIPELINE_H
#define P4NATIVE_PIPELINE_H

#include <stdint.h>

#pragma GCC visibility push(default)

struct pipeline;

/* The receiver of outgoing frames. reserve returns room for a frame of at most max_len bytes that will leave by port,
 * or NULL if there is none (then the copy is dropped, and the sink's owner counts it). commit says how many bytes were
 * written; it follows each successful reserve before the next one. */
struct pl_sink {
	void *context;
	uint8_t *(*reserve)(void *context, uint16_t port, uint32_t max_len);
	void (*commit)(void *context, uint16_t port, uint32_t len);
};

struct pipeline *pl_new(uint64_t seed);
void pl_free(struct pipeline *p);

/* The holder of the lock may call control functions, too: no packet is processed in between. */
void pl_lock(struct pipeline *p);
void pl_unlock(struct pipeline *p);
/* Sets what the command line may change: the drop port (511) and the number of priority queues of a port (1). */
void pl_set_limits(struct pipeline *p, uint16_t drop_port, uint32_t priority_queues);
/* Processes a packet: parser, ingress, traffic manager, egress and deparser. now_us is the time for its timestamps. */
void pl_process(struct pipeline *p, uint16_t port, const uint8_t *frame, uint32_t len, uint64_t now_us,
		const struct pl_sink *sink);

/* Says what the last len bytes of the frame that pl_process is given next sum to (csum_words of csum_words.h), so that a
 * checksum over them need not read them again. */
void pl_know_sum(struct pipeline *p, const uint8_t *bytes, uint32_t len, uint32_t sum);

/* Keys and arguments: each field big endian in (bits + 7) / 8 bytes, fields in the JSON's order. mask has key's
 * layout: all ones (exact), the prefix's ones (lpm), the mask (ternary), the upper end (range).
 * Larger priority wins; of equal ones the lower slot of the handle does. Returns 0 or a negative errno: -EEXIST,
 * -ENOENT, -ENOSPC, -EINVAL, -EPERM (constant entries or default), -ENOMEM. */
int pl_table_add(struct pipeline *p, uint32_t table, const uint8_t *key, const uint8_t *mask, int32_t priority,
		 uint32_t action, const uint8_t *args, uint64_t *handle);
int pl_table_modify(struct pipeline *p, uint32_t table, uint64_t handle, uint32_t action, const uint8_t *args);
int pl_table_delete(struct pipeline *p, uint32_t table, uint64_t handle);
int pl_table_set_default(struct pipeline *p, uint32_t table, uint32_t action, const uint8_t *args);

/* Tables with an action profile: an entry refers to a member, or to a group (its number | PL_GROUP). Numbers are the
 * lowest free ones. A group's members may repeat. -EBUSY: entries or groups still refer to it; -EPERM: no selector. */
#define PL_GROUP UINT32_C(0x80000000)
int pl_member_add(struct pipeline *p, uint32_t profile, uint32_t action, const uint8_t *args, uint32_t *member);
int pl_member_modify(struct pipeline *p, uint32_t profile, uint32_t member, uint32_t action, const uint8_t *args);
int pl_member_delete(struct pipeline *p, uint32_t profile, uint32_t member);
int pl_group_add(struct pipeline *p, uint32_t profile, uint32_t *group);
int pl_group_set(struct pipeline *p, uint32_t profile, uint32_t group, const uint32_t *members, uint32_t count);
int pl_group_delete(struct pipeline *p, uint32_t profile, uint32_t group);
int pl_table_add_indirect(struct pipeline *p, uint32_t table, const uint8_t *key, const uint8_t *mask,
			  int32_t priority, uint32_t target, uint64_t *handle);
int pl_table_modify_indirect(struct pipeline *p, uint32_t table, uint64_t handle, uint32_t target);
int pl_table_set_default_indirect(struct pipeline *p, uint32_t table, uint32_t target);

/* As the handle of a counter or meter: the default entry, which misses use. */
#define PL_DEFAULT_ENTRY UINT64_MAX
/* Read and write the packets and bytes (as received) that matched an entry. -EPERM: the table has no direct counters. */
int pl_entry_counter_read(struct pipeline *p, uint32_t table, uint64_t handle, uint64_t *packets, uint64_t *bytes);
int pl_entry_counter_write(struct pipeline *p, uint32_t table, uint64_t handle, uint64_t packets, uint64_t bytes);

/* Meters: rates are committed, peak, in packets or bytes (as received) per microsecond; committed <= peak. Without rates
 * (NULL; configured 0) all packets are green. -EPERM where the table has no direct meters. */
struct pl_rate {
	double per_us;
	uint64_t burst;
};
int pl_meter_set(struct pipeline *p, uint32_t meter, uint32_t index, const struct pl_rate *rates);
int pl_meter_read(struct pipeline *p, uint32_t meter, uint32_t index, struct pl_rate *rates, uint32_t *configured);
int pl_entry_meter_set(struct pipeline *p, uint32_t table, uint64_t handle, const struct pl_rate *rates);
int pl_entry_meter_read(struct pipeline *p, uint32_t table, uint64_t handle, struct pl_rate *rates,
			uint32_t *configured);

/* Returns 1 if a packet has matched the entry since the last call or since it was added. -EPERM: no timeouts. */
int pl_entry_take_hit(struct pipeline *p, uint32_t table, uint64_t handle);

/* Sets all members of a parser value set: count times key and mask, each field in (bits + 7) / 8 bytes. */
int pl_value_set_fill(struct pipeline *p, uint32_t set, const uint8_t *members, uint32_t count);

/* Takes the samples of digests since the last call. A record has the number of the list (uint16_t in host order; lists
 * are in the JSON's order) and its fields, each big endian in (bits + 7) / 8 bytes. Returns the size of all records; if
 * that is above room, nothing is written or taken. */
uint32_t pl_take_digests(struct pipeline *p, uint8_t *data, uint32_t room);

/* Takes the lines that the program has logged since the last call, in the same way as pl_take_digests. */
uint32_t pl_take_messages(struct pipeline *p, char *data, uint32_t room);

struct pl_replica {
	uint16_t port;
	uint16_t rid;
};
int pl_multicast_group(struct pipeline *p, uint32_t group, const struct pl_replica *replicas, uint32_t count);
/* max_bytes: copies are cut to this length; 0: they are not cut. */
int pl_clone_session(struct pipeline *p, uint32_t session, const struct pl_replica *replicas, uint32_t count,
		     uint32_t max_bytes);

int pl_counter_read(struct pipeline *p, uint32_t counter, uint32_t index, uint64_t *packets, uint64_t *bytes);
int pl_counter_write(struct pipeline *p, uint32_t counter, uint32_t index, uint64_t packets, uint64_t bytes);
/* Reads a cell into (bits + 7) / 8 big endian bytes. */
int pl_register_read(struct pipeline *p, uint32_t reg, uint32_t index, uint8_t *value);
/* Reads the `count` cells with these indices into consecutive values. Fails at the first that does not exist. */
int pl_registers_read(struct pipeline *p, uint32_t reg, const uint32_t *indices, uint32_t count, uint8_t *values);
int pl_register_write(struct pipeline *p, uint32_t reg, uint32_t index, const uint8_t *value);
/* Reads the counts of drops by reason, in the order of pl_drop_names. Returns how many reasons there are. */
uint32_t pl_drops(struct pipeline *p, uint64_t *counts, uint32_t room);
extern const char *const pl_drop_names[];

/* Processes a packet and returns its copies in memory: records of {uint16_t port, uint32_t length} in host order
 * without padding, each followed by the frame. The buffer belongs to the pipeline and is valid until the next call.
 * Returns NULL without memory. Takes the lock itself. */
const uint8_t *pl_collect(struct pipeline *p, uint16_t port, const uint8_t *frame, uint32_t len, uint64_t now_us,
			  uint64_t *size);

#pragma GCC visibility pop

#endif
