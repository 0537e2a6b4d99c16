/* Finding entries: a hash table of cells that name slots.
 *
 * An exact table hashes its whole key. The others do tuple-space search: entries are hashed under a mask of the key's
 * bits, the entries of one mask are a tuple, and a look-up probes the tuples by descending priority until none left can
 * hold a better entry. Of a range [low, high] the mask keeps the bits above the smallest power of two that is not
 * shorter: the range then lies in one block of that size or in two adjacent ones, and has a cell for each. */
#ifndef P4NATIVE_INDEX_H
#define P4NATIVE_INDEX_H

#include <errno.h>
#include <stdlib.h>

#include "table.h"

#define MAX_CELLS 4 /* cells of an entry: two for each of HASHED_RANGES fields */
#define HASHED_RANGES 2

static inline bool table_exact(const struct table *t)
{
	return t->shape->kind == MATCH_EXACT;
}

/* Writes a mask of the bits that are hashed of a range of this field. */
static inline void range_mask(const struct key_field *f, const uint8_t *low, const uint8_t *high, uint8_t *mask)
{
	uint32_t bytes = (f->bits + 7u) / 8, size = 0;
	uint64_t length;

	memset(mask, 0, bytes);
	if (bytes > 8)
		return;
	length = load_be(high, bytes) - load_be(low, bytes);
	while (size < f->bits && length >> size)
		size++;
	if (size < f->bits)
		store_be(mask, low_bits(UINT64_MAX, f->bits) >> size << size, bytes);
}

/* Writes the mask of bits under which an entry is hashed. */
static inline void entry_tuple_mask(const struct table *t, struct entry *e, uint8_t *mask)
{
	uint32_t ranges = 0;

	memcpy(mask, entry_mask(t, e), t->shape->key_bytes);
	for (uint32_t i = 0; i < t->shape->fields; i++) {
		const struct key_field *f = &t->shape->field[i];

		if (f->kind != MATCH_RANGE)
			continue;
		if (ranges++ < HASHED_RANGES)
			range_mask(f, e->data + f->offset, entry_mask(t, e) + f->offset, mask + f->offset);
		else
			memset(mask + f->offset, 0, (f->bits + 7u) / 8);
	}
}

/* Writes the hashes of an entry's cells, each once. Returns how many. The ends of a range may lie in two blocks. */
static inline uint32_t entry_hashes(const struct table *t, struct entry *e, uint32_t hashes[MAX_CELLS])
{
	const uint8_t *mask = tuple_mask(t, e->tuple), *high = entry_mask(t, e);
	uint32_t count = 0, ranges = 0;

	if (table_exact(t)) {
		hashes[0] = hash_key(e->data, t->shape->key_bytes, 0);
		return 1;
	}
	for (uint32_t i = 0; i < t->shape->fields; i++)
		ranges += t->shape->field[i].kind == MATCH_RANGE;
	ranges = ranges < HASHED_RANGES ? ranges : HASHED_RANGES;
	for (uint32_t ends = 0; ends < 1u << ranges; ends++) {
		uint32_t number = 0, hash, seen = 0;

		memcpy(t->masked, e->data, t->shape->key_bytes);
		for (uint32_t i = 0; i < t->shape->fields; i++) {
			const struct key_field *f = &t->shape->field[i];

			if (f->kind == MATCH_RANGE && number < ranges && ends >> number++ & 1)
				memcpy(t->masked + f->offset, high + f->offset, (f->bits + 7u) / 8);
		}
		hash = hash_masked(t->masked, mask, t->shape->key_bytes, e->tuple);
		while (seen < count && hashes[seen] != hash)
			seen++;
		if (seen == count)
			hashes[count++] = hash;
	}
	return count;
}

static inline void cell_insert(struct table *t, uint32_t slot, uint32_t hash)
{
	uint32_t at = hash & t->cell_mask;

	while (t->cell[at].slot)
		at = (at + 1) & t->cell_mask;
	t->cell[at] = (struct cell){slot + 1, hash};
	t->cells++;
}

/* Removes a cell. With linear probing and no tombstones, later cells of the run move up into the gap. */
static inline void cell_remove(struct table *t, uint32_t slot, uint32_t hash)
{
	uint32_t mask = t->cell_mask, gap = hash & mask;

	while (t->cell[gap].slot != slot + 1 || t->cell[gap].hash != hash)
		gap = (gap + 1) & mask;
	t->cell[gap].slot = 0;
	t->cells--;
	for (uint32_t at = (gap + 1) & mask; t->cell[at].slot; at = (at + 1) & mask) {
		if (((at - t->cell[at].hash) & mask) >= ((at - gap) & mask)) {
			t->cell[gap] = t->cell[at];
			t->cell[at].slot = 0;
			gap = at;
		}
	}
}

/* Returns the index in tuple_cell where the tuple of a mask is, or would be. */
static inline uint32_t tuple_place(const struct table *t, const uint8_t *mask)
{
	uint32_t size = t->shape->key_bytes, at = hash_key(mask, size, 0) & t->tuple_cell_mask;

	while (t->tuple_cell[at] && memcmp(tuple_mask(t, t->tuple_cell[at] - 1), mask, size))
		at = (at + 1) & t->tuple_cell_mask;
	return at;
}

/* Moves a tuple to its place in the order, after its best priority has risen or it was added at the end. */
static inline void tuple_raise(struct table *t, uint32_t number, int32_t priority)
{
	uint32_t at = t->tuples - 1, low = 0, high;

	while (t->order[at].tuple != number)
		at--;
	high = at;
	while (low < high) {
		uint32_t middle = (low + high) / 2;

		if (t->order[middle].priority >= priority)
			low = middle + 1;
		else
			high = middle;
	}
	memmove(t->order + low + 1, t->order + low, (at - low) * sizeof(*t->order));
	t->order[low] = (struct tuple_order){priority, number};
	t->tuple[number].priority = priority;
}

/* Enters an entry into its tuple, which is made if it does not exist. There must be room. */
static inline void tuple_enter(struct table *t, struct entry *e, const uint8_t *mask)
{
	uint32_t at = tuple_place(t, mask), number;

	if (!t->tuple_cell[at]) {
		number = t->tuples++;
		memcpy(tuple_mask(t, number), mask, t->shape->key_bytes);
		t->tuple[number] = (struct tuple){0, e->priority};
		t->order[number] = (struct tuple_order){e->priority, number};
		t->tuple_cell[at] = number + 1;
		tuple_raise(t, number, e->priority);
	}
	number = t->tuple_cell[at] - 1;
	t->tuple[number].entries++;
	if (t->tuple[number].priority < e->priority)
		tuple_raise(t, number, e->priority);
	e->tuple = number;
}

static inline void index_enter(struct table *t, uint32_t slot)
{
	struct entry *e = table_slot(t, slot);
	uint32_t hashes[MAX_CELLS], count;

	if (!table_exact(t)) {
		entry_tuple_mask(t, e, t->masked);
		tuple_enter(t, e, t->masked);
	}
	count = entry_hashes(t, e, hashes);
	for (uint32_t i = 0; i < count; i++)
		cell_insert(t, slot, hashes[i]);
}

static inline void index_free(struct table *t)
{
	free(t->cell);
	free(t->tuple);
	free(t->tuple_masks);
	free(t->tuple_cell);
	free(t->order);
}

static inline uint32_t power_above(uint32_t count)
{
	uint32_t size = 16;

	while (size < count)
		size *= 2;
	return size;
}

/* Moves the entries to an index with more room, without empty tuples. Without memory nothing changes. */
static inline int index_rebuild(struct table *t)
{
	uint32_t in_use = 0, cells = power_above(4 * (t->cells + MAX_CELLS)), room;
	struct table made = *t;

	for (uint32_t i = 0; i < t->tuples; i++)
		in_use += t->tuple[i].entries > 0;
	room = power_above(2 * in_use + 1);
	made.cell = calloc(cells, sizeof(*made.cell));
	made.tuple = calloc(room, sizeof(*made.tuple));
	made.tuple_masks = calloc(room, t->shape->key_bytes);
	made.tuple_cell = calloc(2 * room, sizeof(*made.tuple_cell));
	made.order = calloc(room, sizeof(*made.order));
	if (!made.cell || !made.tuple || !made.tuple_masks || !made.tuple_cell || !made.order) {
		index_free(&made);
		return -ENOMEM;
	}
	index_free(t);
	*t = made;
	t->cells = t->tuples = 0;
	t->cell_mask = cells - 1;
	t->tuple_cell_mask = 2 * room - 1;
	t->tuple_room = room;
	for (uint32_t slot = 0; slot < t->room; slot++) {
		if (table_slot(t, slot)->used)
			index_enter(t, slot);
	}
	return 0;
}

/* Puts an entry into the index. */
static inline int index_insert(struct table *t, uint32_t slot)
{
	bool full = 2 * (t->cells + MAX_CELLS) > t->cell_mask || t->tuples == t->tuple_room;
	int error = full ? index_rebuild(t) : 0;

	if (!error)
		index_enter(t, slot);
	return error;
}

static inline void index_remove(struct table *t, uint32_t slot)
{
	struct entry *e = table_slot(t, slot);
	uint32_t hashes[MAX_CELLS], count = entry_hashes(t, e, hashes);

	for (uint32_t i = 0; i < count; i++)
		cell_remove(t, slot, hashes[i]);
	if (!table_exact(t))
		t->tuple[e->tuple].entries--;
}

/* Returns the entry that has the same key, mask and priority, or NULL. */
static inline struct entry *index_find_same(const struct table *t, struct entry *e)
{
	uint32_t hashes[MAX_CELLS], at;

	if (!t->cell)
		return NULL;
	if (!table_exact(t)) {
		entry_tuple_mask(t, e, t->masked);
		at = tuple_place(t, t->masked);
		if (!t->tuple_cell[at])
			return NULL;
		e->tuple = t->tuple_cell[at] - 1;
	}
	entry_hashes(t, e, hashes);
	for (at = hashes[0] & t->cell_mask; t->cell[at].slot; at = (at + 1) & t->cell_mask) {
		struct entry *other = table_slot(t, t->cell[at].slot - 1);

		if (other->priority == e->priority && !memcmp(other->data, e->data, 2 * t->shape->key_bytes))
			return other;
	}
	return NULL;
}

#endif
