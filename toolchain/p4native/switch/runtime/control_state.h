/* Control calls of pipeline.h for meters, digests, value sets and idle entries. */
#ifndef P4NATIVE_CONTROL_STATE_H
#define P4NATIVE_CONTROL_STATE_H

int pl_meter_set(struct pipeline *p, uint32_t meter, uint32_t index, const struct pl_rate *rates)
{
	int error;

	if (meter >= METERS || index >= meter_sizes[meter])
		return -EINVAL;
	pl_lock(p);
	error = meter_set(&p->meter[meter][index], rates);
	pl_unlock(p);
	return error;
}

int pl_meter_read(struct pipeline *p, uint32_t meter, uint32_t index, struct pl_rate *rates, uint32_t *configured)
{
	if (meter >= METERS || index >= meter_sizes[meter])
		return -EINVAL;
	pl_lock(p);
	meter_read(&p->meter[meter][index], rates, configured);
	pl_unlock(p);
	return 0;
}

/* Finds the entry whose meter is asked for. Returns 0 or a negative errno. The caller holds the lock. */
static int metered_entry(struct pipeline *p, uint32_t table, uint64_t handle, struct meter **m)
{
	struct entry *e;

	if (table >= TABLES)
		return -EINVAL;
	if (!table_shapes[table].meters)
		return -EPERM;
	e = table_resources(&p->table[table], handle);
	*m = e ? entry_meter(&p->table[table], e) : NULL;
	return e ? 0 : -ENOENT;
}

int pl_entry_meter_set(struct pipeline *p, uint32_t table, uint64_t handle, const struct pl_rate *rates)
{
	struct meter *m;
	int error;

	pl_lock(p);
	error = metered_entry(p, table, handle, &m);
	if (!error)
		error = meter_set(m, rates);
	pl_unlock(p);
	return error;
}

int pl_entry_meter_read(struct pipeline *p, uint32_t table, uint64_t handle, struct pl_rate *rates,
			uint32_t *configured)
{
	struct meter *m;
	int error;

	pl_lock(p);
	error = metered_entry(p, table, handle, &m);
	if (!error)
		meter_read(m, rates, configured);
	pl_unlock(p);
	return error;
}

int pl_entry_take_hit(struct pipeline *p, uint32_t table, uint64_t handle)
{
	struct entry *e;
	int hit = -ENOENT;

	if (table >= TABLES)
		return -EINVAL;
	if (!table_shapes[table].timeouts)
		return -EPERM;
	pl_lock(p);
	e = table_entry(&p->table[table], handle);
	if (e) {
		hit = e->hit;
		e->hit = false;
	}
	pl_unlock(p);
	return hit;
}

int pl_value_set_fill(struct pipeline *p, uint32_t set, const uint8_t *members, uint32_t count)
{
	int error;

	if (set >= VALUE_SETS)
		return -EINVAL;
	pl_lock(p);
	error = value_set_fill(&p->value_set[set], members, count, value_set_bytes[set]);
	pl_unlock(p);
	return error;
}

uint32_t pl_take_messages(struct pipeline *p, char *data, uint32_t room)
{
	uint32_t used;

	pl_lock(p);
	used = p->messages_used;
	if (used <= room) {
		if (used)
			memcpy(data, p->messages, used);
		p->messages_used = 0;
	}
	pl_unlock(p);
	return used;
}

uint32_t pl_take_digests(struct pipeline *p, uint8_t *data, uint32_t room)
{
	uint32_t used;

	pl_lock(p);
	used = p->digests_used;
	if (used <= room) {
		if (used)
			memcpy(data, p->digests, used);
		p->digests_used = 0;
	}
	pl_unlock(p);
	return used;
}

#endif
