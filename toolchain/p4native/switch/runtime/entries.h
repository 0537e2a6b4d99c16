/* Changing tables: what control calls do, with the lock held. Only here do tables allocate. */
#ifndef P4NATIVE_ENTRIES_H
#define P4NATIVE_ENTRIES_H

#include "index.h"

static inline int table_grow(struct table *t)
{
	uint32_t room = t->room ? 2 * t->room : 16;
	uint8_t *slots = realloc(t->slots, (size_t)room * t->stride);

	if (!slots)
		return -ENOMEM;
	t->slots = slots;
	memset(slots + (size_t)t->room * t->stride, 0, (size_t)(room - t->room) * t->stride);
	t->room = room;
	return 0;
}

static inline bool spare_bits_zero(const uint8_t *value, uint32_t bits)
{
	return bits % 8 == 0 || !(value[0] >> bits % 8);
}

/* The prefix length of a contiguous mask, -1 for any other. */
static inline int32_t prefix_length(const uint8_t *mask, uint32_t bits)
{
	uint32_t bytes = (bits + 7) / 8, len = 0;
	bool ended = false;

	for (uint32_t i = 8 * bytes - bits; i < 8 * bytes; i++) {
		bool one = mask[i / 8] >> (7 - i % 8) & 1;

		if (one && ended)
			return -1;
		ended = !one;
		len += one;
	}
	return (int32_t)len;
}

static inline bool all_ones(const uint8_t *mask, uint32_t bits)
{
	return prefix_length(mask, bits) == (int32_t)bits;
}

/* Checks a field of an entry, and converts its value to the form that look-ups compare. */
static inline int field_prepare(const struct key_field *f, uint8_t *value, const uint8_t *mask)
{
	uint32_t bytes = (f->bits + 7u) / 8;

	value += f->offset;
	mask += f->offset;
	if (!spare_bits_zero(value, f->bits) || !spare_bits_zero(mask, f->bits))
		return -EINVAL;
	if (f->kind == MATCH_RANGE)
		return memcmp(value, mask, bytes) <= 0 ? 0 : -EINVAL;
	if (f->kind == MATCH_EXACT && !all_ones(mask, f->bits))
		return -EINVAL;
	if (f->kind == MATCH_LPM && prefix_length(mask, f->bits) < 0)
		return -EINVAL;
	for (uint32_t i = 0; i < bytes; i++)
		value[i] &= mask[i];
	return 0;
}

static inline int entry_prepare(const struct table *t, struct entry *e, const uint8_t *key,
				const uint8_t *mask, int32_t priority)
{
	const struct table_shape *shape = t->shape;

	e->priority = shape->kind == MATCH_EXACT ? 0 : priority;

	memcpy(e->data, key, shape->key_bytes);
	memcpy(entry_mask(t, e), mask, shape->key_bytes);
	for (uint32_t i = 0; i < shape->fields; i++) {
		const struct key_field *f = &shape->field[i];
		int error = field_prepare(f, e->data, entry_mask(t, e));

		if (error)
			return error;
		if (shape->kind == MATCH_LPM && f->kind == MATCH_LPM)
			e->priority = prefix_length(entry_mask(t, e) + f->offset, f->bits);
	}
	for (uint32_t i = 0; shape->static_mask && i < shape->key_bytes; i++)
		e->data[i] &= shape->static_mask[i];
	return 0;
}

/* Checks that an action is allowed, and that its arguments fit. */
static inline int check_action(const uint32_t *allowed, uint32_t count, uint32_t action,
			       const struct action_shape *shape, const uint8_t *args)
{
	uint32_t i = 0;

	while (i < count && allowed[i] != action)
		i++;
	if (i == count)
		return -EINVAL;
	for (i = 0; i < shape[action].params; i++) {
		uint32_t bits = shape[action].param_bits[i];

		if (!spare_bits_zero(args, bits))
			return -EINVAL;
		args += (bits + 7) / 8;
	}
	return 0;
}

/* What an entry does, after checks: an action with arguments, or a member or group of a profile without arguments. */
struct choice {
	uint32_t action;
	uint32_t args_bytes;
	const uint8_t *args;
};

static inline int choose_action(const struct table *t, uint32_t action, const struct action_shape *shape,
				const uint8_t *args, struct choice *c)
{
	int error = check_action(t->shape->action, t->shape->actions, action, shape, args);

	if (!error)
		*c = (struct choice){action, shape[action].args_bytes, args};
	return error;
}

static inline void entry_set(const struct table *t, struct entry *e, const struct choice *c)
{
	e->action = c->action;
	if (c->args_bytes)
		memcpy(entry_args(t->shape->key_bytes, e), c->args, c->args_bytes);
}

static inline int table_add(struct table *t, const uint8_t *key, const uint8_t *mask, int32_t priority,
			    const struct choice *c, uint64_t *handle)
{
	uint32_t slot = t->lowest_free;
	struct entry *e;
	int error;

	if (!t->shape->fields)
		return -EINVAL;
	if (t->count == t->room) {
		error = table_grow(t);
		if (error)
			return error;
	}
	while (table_slot(t, slot)->used)
		slot++;
	t->lowest_free = slot;
	e = table_slot(t, slot);
	error = entry_prepare(t, e, key, mask, priority);
	if (error)
		return error;
	if (index_find_same(t, e))
		return -EEXIST;
	if (t->count >= t->shape->max_size)
		return -ENOSPC;
	error = index_insert(t, slot);
	if (error)
		return error;
	entry_set(t, e, c);
	e->used = true;
	e->hit = false;
	e->packets = e->bytes = 0;
	if (t->shape->meters)
		*entry_meter(t, e) = (struct meter){0};
	t->count++;
	*handle = (uint64_t)e->generation << 32 | slot;
	return 0;
}

/* Returns the entry that a handle names, or NULL. */
static inline struct entry *table_entry(const struct table *t, uint64_t handle)
{
	uint32_t slot = (uint32_t)handle;
	struct entry *e;

	if (slot >= t->room)
		return NULL;
	e = table_slot(t, slot);
	return e->used && e->generation == handle >> 32 ? e : NULL;
}

/* Returns the entry (or the default entry) that has the counter and meter of a handle, or NULL. */
static inline struct entry *table_resources(const struct table *t, uint64_t handle)
{
	return handle == PL_DEFAULT_ENTRY ? t->missed : table_entry(t, handle);
}

static inline int table_modify(struct table *t, uint64_t handle, const struct choice *c)
{
	struct entry *e = table_entry(t, handle);

	if (!e)
		return -ENOENT;
	entry_set(t, e, c);
	return 0;
}

static inline int table_delete(struct table *t, uint64_t handle)
{
	struct entry *e = table_entry(t, handle);

	if (!e)
		return -ENOENT;
	index_remove(t, (uint32_t)handle);
	t->count--;
	if ((uint32_t)handle < t->lowest_free)
		t->lowest_free = (uint32_t)handle;
	e->used = false;
	e->generation++;
	return 0;
}

static inline void table_set_default(struct table *t, const struct choice *c)
{
	t->default_action = c->action;
	if (c->args_bytes)
		memcpy(t->default_args, c->args, c->args_bytes);
}

/* Initialises a zeroed table. After an error table_free still works. */
static inline int table_init(struct table *t, const struct table_shape *shape,
			     const struct action_shape *actions)
{
	size_t size = sizeof(struct entry) + 2 * (size_t)shape->key_bytes + shape->args_bytes;
	int error = 0;

	t->shape = shape;
	t->meter = (uint32_t)((size + 7) / 8 * 8);
	t->stride = t->meter + (shape->meters ? (uint32_t)sizeof(struct meter) : 0);
	t->default_action = shape->default_action;
	t->default_args = calloc(1, shape->args_bytes + 1);
	t->missed = calloc(1, t->stride);
	t->masked = calloc(1, shape->key_bytes + 1);
	if (!t->default_args || !t->missed || !t->masked)
		return -ENOMEM;
	if (shape->default_action >= 0)
		memcpy(t->default_args, shape->default_args,
		       actions[shape->default_action].args_bytes);
	for (uint32_t i = 0; !error && i < shape->entries; i++) {
		const struct const_entry *e = &shape->entry[i];
		struct choice c;
		uint64_t handle;

		error = choose_action(t, e->action, actions, (const uint8_t *)e->args, &c);
		if (!error)
			error = table_add(t, (const uint8_t *)e->key, (const uint8_t *)e->mask, e->priority, &c,
					  &handle);
	}
	return error;
}

static inline void table_free(struct table *t)
{
	free(t->slots);
	index_free(t);
	free(t->masked);
	free(t->default_args);
	free(t->missed);
}

#endif
