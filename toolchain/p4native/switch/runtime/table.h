/* Match-action tables and their look-ups (index.h says how entries are found). Keys are byte strings, each field padded
 * to bytes, as in pipeline.h. */
#ifndef P4NATIVE_TABLE_H
#define P4NATIVE_TABLE_H

#include "bytes.h"
#include "meter.h"

enum match_kind { MATCH_EXACT, MATCH_LPM, MATCH_TERNARY, MATCH_RANGE };

struct key_field {
	uint8_t kind;
	uint16_t bits;
	uint16_t offset;
};

struct action_shape {
	uint32_t args_bytes;
	uint32_t params;
	const uint16_t *param_bits;
};

struct const_entry {
	const char *key, *mask, *args;
	int32_t priority;
	uint32_t action;
};

struct table_shape {
	uint8_t kind;
	bool const_entries, const_default, const_default_action, counters, meters, timeouts;
	uint32_t max_size;
	uint32_t key_bytes, args_bytes; /* args_bytes: bytes of arguments of the action that has most */
	uint32_t fields;
	const struct key_field *field;
	const uint8_t *static_mask; /* ANDed to keys, or NULL */
	int32_t profile; /* -1: entries hold actions */
	uint32_t actions;
	const uint32_t *action;
	int64_t default_action; /* -1: none */
	const char *default_args;
	uint32_t entries;
	const struct const_entry *entry;
};

struct entry {
	uint64_t packets, bytes;
	int32_t priority; /* lpm: the prefix's length */
	uint32_t generation;
	uint32_t action; /* with an action profile: a member, or a group | PL_GROUP */
	uint32_t tuple;
	bool used;
	bool hit;       /* whether a packet has matched since the last query */
	uint8_t data[]; /* key, mask, args, and a struct meter where the table has them */
};

struct cell {
	uint32_t slot; /* number of the slot + 1; 0: empty */
	uint32_t hash;
};

struct tuple {
	uint32_t entries;
	int32_t priority; /* the highest priority of the entries */
};

struct tuple_order {
	int32_t priority;
	uint32_t tuple;
};

struct table {
	const struct table_shape *shape;
	uint32_t stride;
	uint32_t meter; /* offset of the meter in an entry */
	uint32_t count, room; /* entries in use; slots allocated */
	uint32_t lowest_free; /* no free slot lies below */
	uint8_t *slots;
	struct cell *cell; /* NULL: there has never been an entry */
	uint32_t cells, cell_mask;
	struct tuple *tuple;
	uint8_t *tuple_masks;
	struct tuple_order *order; /* by descending priority */
	uint32_t *tuple_cell;	   /* hash table by mask: number of the tuple + 1, or 0 */
	uint32_t tuples, tuple_room, tuple_cell_mask;
	uint8_t *masked; /* room for one key */
	int64_t default_action;
	uint8_t *default_args;
	struct entry *missed; /* counter and meter of the default entry */
};

static inline struct entry *table_slot(const struct table *t, uint32_t slot)
{
	return (struct entry *)(t->slots + (size_t)slot * t->stride);
}

static inline uint8_t *entry_mask(const struct table *t, struct entry *e)
{
	return e->data + t->shape->key_bytes;
}

static inline uint8_t *entry_args(uint32_t key_bytes, struct entry *e)
{
	return e->data + 2 * key_bytes;
}

static inline uint8_t *tuple_mask(const struct table *t, uint32_t tuple)
{
	return t->tuple_masks + (size_t)tuple * t->shape->key_bytes;
}

static inline struct meter *entry_meter(const struct table *t, struct entry *e)
{
	return (struct meter *)((uint8_t *)e + t->meter);
}

static inline uint64_t hash_mix(uint64_t h, uint64_t word)
{
	h = (h ^ word) * UINT64_C(0xff51afd7ed558ccd);
	return h ^ h >> 32;
}

static inline uint32_t hash_end(uint64_t h)
{
	return (uint32_t)(h * UINT64_C(0xc4ceb9fe1a85ec53) >> 32);
}

static inline uint32_t hash_key(const uint8_t *key, uint32_t bytes, uint32_t seed)
{
	uint64_t h = seed + UINT64_C(0x9e3779b97f4a7c15);

	for (; bytes >= 8; key += 8, bytes -= 8)
		h = hash_mix(h, be64(key));
	return hash_end(bytes ? hash_mix(h, load_be(key, bytes)) : h);
}

/* Returns hash_key of the key's bits under the mask. */
static inline uint32_t hash_masked(const uint8_t *key, const uint8_t *mask, uint32_t bytes, uint32_t seed)
{
	uint64_t h = seed + UINT64_C(0x9e3779b97f4a7c15);

	for (; bytes >= 8; key += 8, mask += 8, bytes -= 8)
		h = hash_mix(h, be64(key) & be64(mask));
	return hash_end(bytes ? hash_mix(h, load_be(key, bytes) & load_be(mask, bytes)) : h);
}

/* key_bytes repeats shape->key_bytes so that the compiler sees the constant */
static inline struct entry *table_find_exact(const struct table *t, const uint8_t *key, uint32_t key_bytes)
{
	uint32_t hash = hash_key(key, key_bytes, 0);

	if (!t->count)
		return NULL;
	for (uint32_t at = hash & t->cell_mask; t->cell[at].slot; at = (at + 1) & t->cell_mask) {
		struct entry *e = table_slot(t, t->cell[at].slot - 1);

		if (t->cell[at].hash == hash && !memcmp(e->data, key, key_bytes))
			return e;
	}
	return NULL;
}

static inline bool matches_ternary(const uint8_t *key, const uint8_t *value, const uint8_t *mask,
				   uint32_t bytes)
{
	for (; bytes >= 8; key += 8, value += 8, mask += 8, bytes -= 8) {
		if ((be64(key) & be64(mask)) != be64(value))
			return false;
	}
	return !bytes || (load_be(key, bytes) & load_be(mask, bytes)) == load_be(value, bytes);
}

static inline bool matches_fields(const struct table *t, const uint8_t *key, struct entry *e)
{
	for (uint32_t i = 0; i < t->shape->fields; i++) {
		const struct key_field *f = &t->shape->field[i];
		const uint8_t *value = e->data + f->offset, *mask = entry_mask(t, e) + f->offset;
		uint32_t bytes = (f->bits + 7u) / 8;

		if (f->kind != MATCH_RANGE) {
			if (!matches_ternary(key + f->offset, value, mask, bytes))
				return false;
		} else if (memcmp(key + f->offset, value, bytes) < 0 ||
			   memcmp(key + f->offset, mask, bytes) > 0) {
			return false;
		}
	}
	return true;
}

static inline bool comes_before(const struct entry *a, const struct entry *b)
{
	return a->priority != b->priority ? a->priority > b->priority : a < b;
}

/* Returns the best of `best` and of the matching entries in the run of cells that begins at the hash. */
static inline struct entry *run_find(const struct table *t, const uint8_t *key, uint32_t key_bytes, bool ranges,
				     uint32_t hash, struct entry *best)
{
	for (uint32_t at = hash & t->cell_mask; t->cell[at].slot; at = (at + 1) & t->cell_mask) {
		struct entry *e;

		if (t->cell[at].hash != hash)
			continue;
		e = table_slot(t, t->cell[at].slot - 1);
		if (best && !comes_before(e, best))
			continue;
		if (ranges ? matches_fields(t, key, e) : matches_ternary(key, e->data, e->data + key_bytes, key_bytes))
			best = e;
	}
	return best;
}

static inline struct entry *table_find_masked(const struct table *t, const uint8_t *key, uint32_t key_bytes,
					      bool ranges)
{
	struct entry *best = NULL;

	for (uint32_t i = 0; i < t->tuples; i++) {
		uint32_t tuple = t->order[i].tuple;

		if (best && best->priority > t->order[i].priority)
			break;
		if (t->tuple[tuple].entries) {
			const uint8_t *mask = t->tuple_masks + (size_t)tuple * key_bytes;

			best = run_find(t, key, key_bytes, ranges, hash_masked(key, mask, key_bytes, tuple), best);
		}
	}
	return best;
}

static inline struct entry *table_find_lpm(const struct table *t, const uint8_t *key, uint32_t key_bytes)
{
	return table_find_masked(t, key, key_bytes, false);
}

static inline struct entry *table_find_ternary(const struct table *t, const uint8_t *key, uint32_t key_bytes)
{
	return table_find_masked(t, key, key_bytes, false);
}

static inline struct entry *table_find_range(const struct table *t, const uint8_t *key, uint32_t key_bytes)
{
	return table_find_masked(t, key, key_bytes, true);
}

#endif
