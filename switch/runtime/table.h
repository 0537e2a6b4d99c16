/* Match-action tables and their look-ups: entries in slots, found by hash (exact, lpm) or in order of priority
 * (ternary, range). Keys are byte strings, each field padded to bytes, as in pipeline.h. */
#ifndef AGGLAB_TABLE_H
#define AGGLAB_TABLE_H

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
	uint32_t key_bytes, args_bytes; /* args_bytes: of the action that has most */
	uint32_t fields;
	const struct key_field *field;
	uint32_t lpm_field;
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
	int32_t priority;
	uint32_t generation;
	uint32_t action; /* with an action profile: a member, or a group | PL_GROUP */
	uint16_t prefix_len;
	bool used;
	bool hit;       /* since somebody last asked */
	uint8_t data[]; /* key, mask, args, and a struct meter where the table has them */
};

struct table {
	const struct table_shape *shape;
	uint32_t stride;
	uint32_t meter; /* offset of an entry's */
	uint32_t count, room; /* entries in use; slots allocated */
	uint32_t lowest_free; /* no free slot lies below */
	uint8_t *slots;
	uint32_t *index;      /* hash: slot + 1 or 0; ternary and range: slots in order */
	uint32_t index_mask;
	uint32_t *prefix_count;   /* lpm: entries of each prefix length */
	uint16_t *prefix;         /* lpm: the lengths in use, longest first */
	uint32_t prefixes;
	uint8_t *masked;          /* lpm: room for one key */
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

static inline struct meter *entry_meter(const struct table *t, struct entry *e)
{
	return (struct meter *)((uint8_t *)e + t->meter);
}

static inline uint32_t hash_key(const uint8_t *key, uint32_t bytes, uint32_t seed)
{
	uint64_t h = seed + UINT64_C(0x9e3779b97f4a7c15);

	for (; bytes >= 8; key += 8, bytes -= 8) {
		h = (h ^ be64(key)) * UINT64_C(0xff51afd7ed558ccd);
		h ^= h >> 32;
	}
	if (bytes) {
		h = (h ^ load_be(key, bytes)) * UINT64_C(0xff51afd7ed558ccd);
		h ^= h >> 32;
	}
	return (uint32_t)(h * UINT64_C(0xc4ceb9fe1a85ec53) >> 32);
}

/* key_bytes repeats shape->key_bytes so that the compiler sees the constant */
static inline struct entry *table_find_hashed(const struct table *t, const uint8_t *key,
					      uint32_t key_bytes, uint16_t prefix_len)
{
	uint32_t at = hash_key(key, key_bytes, prefix_len) & t->index_mask;

	for (; t->index[at]; at = (at + 1) & t->index_mask) {
		struct entry *e = table_slot(t, t->index[at] - 1);

		if (e->prefix_len == prefix_len && !memcmp(e->data, key, key_bytes))
			return e;
	}
	return NULL;
}

static inline struct entry *table_find_exact(const struct table *t, const uint8_t *key,
					     uint32_t key_bytes)
{
	return t->count ? table_find_hashed(t, key, key_bytes, 0) : NULL;
}

/* Cut the lpm field of key to prefix_len bits. */
static inline void mask_prefix(uint8_t *key, const struct key_field *field, uint32_t prefix_len)
{
	uint32_t bytes = (field->bits + 7u) / 8;
	uint32_t keep = prefix_len + 8 * bytes - field->bits;

	key += field->offset;
	if (keep % 8)
		key[keep / 8] &= (uint8_t)(0xff00 >> keep % 8);
	for (uint32_t i = (keep + 7) / 8; i < bytes; i++)
		key[i] = 0;
}

static inline struct entry *table_find_lpm(const struct table *t, const uint8_t *key,
					   uint32_t key_bytes)
{
	const struct key_field *field = &t->shape->field[t->shape->lpm_field];

	memcpy(t->masked, key, key_bytes);
	for (uint32_t i = 0; i < t->prefixes; i++) {
		struct entry *e;

		mask_prefix(t->masked, field, t->prefix[i]);
		e = table_find_hashed(t, t->masked, key_bytes, t->prefix[i]);
		if (e)
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

static inline struct entry *table_find_ternary(const struct table *t, const uint8_t *key,
					       uint32_t key_bytes)
{
	for (uint32_t i = 0; i < t->count; i++) {
		struct entry *e = table_slot(t, t->index[i]);

		if (matches_ternary(key, e->data, e->data + key_bytes, key_bytes))
			return e;
	}
	return NULL;
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

static inline struct entry *table_find_range(const struct table *t, const uint8_t *key,
					     uint32_t key_bytes)
{
	(void)key_bytes;
	for (uint32_t i = 0; i < t->count; i++) {
		struct entry *e = table_slot(t, t->index[i]);

		if (matches_fields(t, key, e))
			return e;
	}
	return NULL;
}

#endif
