/* Control calls of pipeline.h. They take the lock, check their arguments, and may allocate. */
#ifndef P4NATIVE_CONTROL_H
#define P4NATIVE_CONTROL_H

#include "control_state.h"
#include "control_tables.h"

static int make_arrays(struct pipeline *p)
{
	for (uint32_t i = 0; i < COUNTERS; i++) {
		p->counter[i] = calloc(counter_sizes[i] + 1u, sizeof(struct counter));
		if (!p->counter[i])
			return -ENOMEM;
	}
	for (uint32_t i = 0; i < METERS; i++) {
		p->meter[i] = calloc(meter_sizes[i] + 1u, sizeof(struct meter));
		if (!p->meter[i])
			return -ENOMEM;
	}
	if (DETAIL) {
		p->messages = malloc(MESSAGE_ROOM);
		if (!p->messages)
			return -ENOMEM;
	}
	if (LEARN_LISTS) {
		p->digests = malloc(DIGEST_ROOM);
		if (!p->digests)
			return -ENOMEM;
	}
	for (uint32_t i = 0; i < REGISTER_GROUPS; i++) {
		uint8_t *memory = calloc(1, (size_t)register_groups[i].size * register_groups[i].stride + 64);

		if (!memory)
			return -ENOMEM;
		p->register_memory[i] = memory;
		p->registers[i] = memory + (-(uintptr_t)memory & 63);
	}
	p->pending = calloc(PENDING, sizeof(*p->pending));
	return p->pending ? 0 : -ENOMEM;
}

struct pipeline *pl_new(uint64_t seed)
{
	struct pipeline *p = calloc(1, sizeof(*p));
	pthread_mutexattr_t recursive;
	int error;

	if (!p)
		return NULL;
	pthread_mutexattr_init(&recursive);
	pthread_mutexattr_settype(&recursive, PTHREAD_MUTEX_RECURSIVE);
	pthread_mutex_init(&p->lock, &recursive);
	pthread_mutexattr_destroy(&recursive);
	p->random = seed;
	p->drop_port = 511;
	p->priority_queues = 1;
	error = make_arrays(p);
	for (uint32_t i = 0; i < PROFILES; i++)
		profile_init(&p->profile[i], &profile_shapes[i]);
	for (uint32_t i = 0; !error && i < TABLES; i++)
		error = table_init(&p->table[i], &table_shapes[i], action_shapes);
	if (error) {
		pl_free(p);
		return NULL;
	}
	return p;
}

void pl_free(struct pipeline *p)
{
	if (!p)
		return;
	for (uint32_t i = 0; i < TABLES; i++)
		table_free(&p->table[i]);
	for (uint32_t i = 0; i < PROFILES; i++)
		profile_free(&p->profile[i]);
	for (uint32_t i = 0; i < COUNTERS; i++)
		free(p->counter[i]);
	for (uint32_t i = 0; i < METERS; i++)
		free(p->meter[i]);
	for (uint32_t i = 0; i < VALUE_SETS; i++)
		free(p->value_set[i].members);
	free(p->digests);
	free(p->messages);
	for (uint32_t i = 0; i < REGISTER_GROUPS; i++)
		free(p->register_memory[i]);
	replicas_free(p->groups, GROUPS);
	replicas_free(p->sessions, SESSIONS);
	free(p->pending);
	free(p->collected.data);
	pthread_mutex_destroy(&p->lock);
	free(p);
}

void pl_lock(struct pipeline *p)
{
	pthread_mutex_lock(&p->lock);
}

void pl_unlock(struct pipeline *p)
{
	pthread_mutex_unlock(&p->lock);
}

void pl_set_limits(struct pipeline *p, uint16_t drop_port, uint32_t priority_queues)
{
	pl_lock(p);
	p->drop_port = drop_port;
	p->priority_queues = priority_queues;
	pl_unlock(p);
}

/* Puts a new list at a number. Sorting needs no lock. */
static int set_replicas(struct pipeline *p, struct replicas_page **pages, uint32_t number,
			const struct pl_replica *replicas, uint32_t count, uint32_t max_bytes)
{
	struct replicas_page **page = &pages[number / PAGE_LISTS];
	struct replicas *list, *old = NULL;
	int error = replicas_new(replicas, count, max_bytes, &list);

	if (error)
		return error;
	pl_lock(p);
	if (!*page)
		*page = calloc(1, sizeof(**page));
	if (*page) {
		old = (*page)->list[number % PAGE_LISTS];
		(*page)->list[number % PAGE_LISTS] = list;
	} else {
		old = list;
		error = -ENOMEM;
	}
	pl_unlock(p);
	free(old);
	return error;
}

int pl_multicast_group(struct pipeline *p, uint32_t group, const struct pl_replica *replicas, uint32_t count)
{
	if (!group || group >= GROUPS)
		return -EINVAL;
	return set_replicas(p, p->groups, group, replicas, count, NO_TRUNCATION);
}

int pl_clone_session(struct pipeline *p, uint32_t session, const struct pl_replica *replicas, uint32_t count,
		     uint32_t max_bytes)
{
	if (session >= SESSIONS)
		return -EINVAL;
	return set_replicas(p, p->sessions, session, replicas, count,
			    max_bytes ? max_bytes : NO_TRUNCATION);
}

int pl_counter_read(struct pipeline *p, uint32_t counter, uint32_t index, uint64_t *packets, uint64_t *bytes)
{
	if (counter >= COUNTERS || index >= counter_sizes[counter])
		return -EINVAL;
	pl_lock(p);
	*packets = p->counter[counter][index].packets;
	*bytes = p->counter[counter][index].bytes;
	pl_unlock(p);
	return 0;
}

int pl_counter_write(struct pipeline *p, uint32_t counter, uint32_t index, uint64_t packets, uint64_t bytes)
{
	if (counter >= COUNTERS || index >= counter_sizes[counter])
		return -EINVAL;
	pl_lock(p);
	p->counter[counter][index].packets = packets;
	p->counter[counter][index].bytes = bytes;
	pl_unlock(p);
	return 0;
}

static uint8_t *register_cell(struct pipeline *p, uint32_t reg, uint32_t index)
{
	const struct register_shape *shape;

	if (reg >= REGISTERS)
		return NULL;
	shape = &register_shapes[reg];
	if (index >= register_groups[shape->group].size)
		return NULL;
	return p->registers[shape->group] + (size_t)index * register_groups[shape->group].stride + shape->offset;
}

/* Converts between a native register and big endian: reverses the bytes. */
static void copy_reversed(uint8_t *out, const uint8_t *in, uint32_t bytes)
{
	for (uint32_t i = 0; i < bytes; i++)
		out[i] = in[bytes - 1 - i];
}

int pl_register_read(struct pipeline *p, uint32_t reg, uint32_t index, uint8_t *value)
{
	uint8_t *cell = register_cell(p, reg, index);
	uint32_t bytes;

	if (!cell)
		return -EINVAL;
	bytes = (register_shapes[reg].bits + 7) / 8;
	pl_lock(p);
	if (register_shapes[reg].native)
		copy_reversed(value, cell, bytes);
	else
		memcpy(value, cell, bytes);
	pl_unlock(p);
	return 0;
}

int pl_registers_read(struct pipeline *p, uint32_t reg, const uint32_t *indices, uint32_t count, uint8_t *values)
{
	int failed = 0;

	for (uint32_t i = 0; i < count && !failed; i++) {
		failed = pl_register_read(p, reg, indices[i], values);
		if (!failed)
			values += (register_shapes[reg].bits + 7) / 8;
	}
	return failed;
}

int pl_register_write(struct pipeline *p, uint32_t reg, uint32_t index, const uint8_t *value)
{
	uint8_t *cell = register_cell(p, reg, index);
	uint32_t bytes;

	if (!cell)
		return -EINVAL;
	bytes = (register_shapes[reg].bits + 7) / 8;
	if (!spare_bits_zero(value, register_shapes[reg].bits))
		return -EINVAL;
	pl_lock(p);
	if (register_shapes[reg].native)
		copy_reversed(cell, value, bytes);
	else
		memcpy(cell, value, bytes);
	pl_unlock(p);
	return 0;
}

uint32_t pl_drops(struct pipeline *p, uint64_t *counts, uint32_t room)
{
	pl_lock(p);
	for (uint32_t i = 0; i < room && i < DROP_REASONS; i++)
		counts[i] = p->drops[i];
	pl_unlock(p);
	return DROP_REASONS;
}

#define RECORD_HEADER (sizeof(uint16_t) + sizeof(uint32_t))

static uint8_t *collect_reserve(void *context, uint16_t port, uint32_t max_len)
{
	struct collected *c = context;
	uint64_t need = c->used + RECORD_HEADER + max_len;

	(void)port;
	if (need > c->room) {
		uint8_t *data = realloc(c->data, 2 * need);

		c->failed |= !data;
		if (!data)
			return NULL;
		c->data = data;
		c->room = 2 * need;
	}
	return c->data + c->used + RECORD_HEADER;
}

static void collect_commit(void *context, uint16_t port, uint32_t len)
{
	struct collected *c = context;

	memcpy(c->data + c->used, &port, sizeof(port));
	memcpy(c->data + c->used + sizeof(port), &len, sizeof(len));
	c->used += RECORD_HEADER + len;
}

const uint8_t *pl_collect(struct pipeline *p, uint16_t port, const uint8_t *frame, uint32_t len, uint64_t now_us,
			  uint64_t *size)
{
	struct pl_sink sink = {&p->collected, collect_reserve, collect_commit};
	static const uint8_t nothing;

	pl_lock(p);
	p->collected.used = 0;
	p->collected.failed = false;
	pl_process(p, port, frame, len, now_us, &sink);
	*size = p->collected.used;
	pl_unlock(p);
	if (p->collected.failed)
		return NULL;
	return p->collected.data ? p->collected.data : &nothing;
}

#endif
