/* Control calls of pipeline.h for tables and action profiles. */
#ifndef P4NATIVE_CONTROL_TABLES_H
#define P4NATIVE_CONTROL_TABLES_H

/* Checks that clients may change the table's entries, and that it has an action profile if indirect, none if not. */
static int check_table(uint32_t table, bool indirect)
{
	if (table >= TABLES || (table_shapes[table].profile >= 0) != indirect)
		return -EINVAL;
	return table_shapes[table].const_entries ? -EPERM : 0;
}

static int check_default(uint32_t table, bool indirect, uint32_t action)
{
	const struct table_shape *shape;

	if (table >= TABLES || (table_shapes[table].profile >= 0) != indirect)
		return -EINVAL;
	shape = &table_shapes[table];
	if (shape->const_default || (shape->const_default_action && shape->default_action != (int64_t)action))
		return -EPERM;
	return 0;
}

int pl_table_add(struct pipeline *p, uint32_t table, const uint8_t *key, const uint8_t *mask, int32_t priority,
		 uint32_t action, const uint8_t *args, uint64_t *handle)
{
	struct choice c;
	int error = check_table(table, false);

	if (!error)
		error = choose_action(&p->table[table], action, action_shapes, args, &c);
	if (error)
		return error;
	pl_lock(p);
	error = table_add(&p->table[table], key, mask, priority, &c, handle);
	pl_unlock(p);
	return error;
}

int pl_table_modify(struct pipeline *p, uint32_t table, uint64_t handle, uint32_t action, const uint8_t *args)
{
	struct choice c;
	int error = check_table(table, false);

	if (!error)
		error = choose_action(&p->table[table], action, action_shapes, args, &c);
	if (error)
		return error;
	pl_lock(p);
	error = table_modify(&p->table[table], handle, &c);
	pl_unlock(p);
	return error;
}

/* Returns how often the member or group of an entry is used in its profile. The caller holds the lock. */
static uint32_t *target_users(struct pipeline *p, uint32_t table, int64_t target)
{
	int32_t profile = table_shapes[table].profile;

	return profile < 0 || target < 0 ? NULL : profile_users(&p->profile[profile], (uint32_t)target);
}

int pl_table_delete(struct pipeline *p, uint32_t table, uint64_t handle)
{
	struct entry *e;
	uint32_t *users;
	int error;

	if (table >= TABLES)
		return -EINVAL;
	if (table_shapes[table].const_entries)
		return -EPERM;
	pl_lock(p);
	e = table_entry(&p->table[table], handle);
	users = e ? target_users(p, table, e->action) : NULL;
	if (users)
		--*users;
	error = table_delete(&p->table[table], handle);
	pl_unlock(p);
	return error;
}

int pl_table_set_default(struct pipeline *p, uint32_t table, uint32_t action, const uint8_t *args)
{
	struct choice c;
	int error = check_default(table, false, action);

	if (!error)
		error = choose_action(&p->table[table], action, action_shapes, args, &c);
	if (error)
		return error;
	pl_lock(p);
	table_set_default(&p->table[table], &c);
	pl_unlock(p);
	return 0;
}

int pl_table_add_indirect(struct pipeline *p, uint32_t table, const uint8_t *key, const uint8_t *mask,
			  int32_t priority, uint32_t target, uint64_t *handle)
{
	struct choice c = {.action = target};
	int error = check_table(table, true);
	uint32_t *users;

	if (error)
		return error;
	pl_lock(p);
	users = target_users(p, table, target);
	error = users ? table_add(&p->table[table], key, mask, priority, &c, handle) : -ENOENT;
	if (!error)
		++*users;
	pl_unlock(p);
	return error;
}

int pl_table_modify_indirect(struct pipeline *p, uint32_t table, uint64_t handle, uint32_t target)
{
	struct choice c = {.action = target};
	int error = check_table(table, true);
	struct entry *e;
	uint32_t *users;

	if (error)
		return error;
	pl_lock(p);
	e = table_entry(&p->table[table], handle);
	users = target_users(p, table, target);
	if (e && users) {
		++*users;
		--*target_users(p, table, e->action);
		entry_set(&p->table[table], e, &c);
	}
	pl_unlock(p);
	return e && users ? 0 : -ENOENT;
}

int pl_table_set_default_indirect(struct pipeline *p, uint32_t table, uint32_t target)
{
	struct choice c = {.action = target};
	int error = check_default(table, true, target);
	uint32_t *users, *before;

	if (error)
		return error;
	pl_lock(p);
	users = target_users(p, table, target);
	before = target_users(p, table, p->table[table].default_action);
	if (users) {
		++*users;
		if (before)
			--*before;
		table_set_default(&p->table[table], &c);
	}
	pl_unlock(p);
	return users ? 0 : -ENOENT;
}

/* Calls a function of profile.h for one of the profiles, with the lock held. */
#define ON_PROFILE(p, number, function, ...)                                    \
	({                                                                      \
		int error_ = -EINVAL;                                           \
                                                                                \
		if ((number) < PROFILES) {                                      \
			pl_lock(p);                                             \
			error_ = function(&(p)->profile[number], __VA_ARGS__);  \
			pl_unlock(p);                                           \
		}                                                               \
		error_;                                                         \
	})

int pl_member_add(struct pipeline *p, uint32_t profile, uint32_t action, const uint8_t *args, uint32_t *member)
{
	return ON_PROFILE(p, profile, member_add, action, action_shapes, args, member);
}

int pl_member_modify(struct pipeline *p, uint32_t profile, uint32_t member, uint32_t action, const uint8_t *args)
{
	return ON_PROFILE(p, profile, member_modify, member, action, action_shapes, args);
}

int pl_member_delete(struct pipeline *p, uint32_t profile, uint32_t member)
{
	return ON_PROFILE(p, profile, member_delete, member);
}

int pl_group_add(struct pipeline *p, uint32_t profile, uint32_t *group)
{
	return ON_PROFILE(p, profile, group_add, group);
}

int pl_group_set(struct pipeline *p, uint32_t profile, uint32_t group, const uint32_t *members, uint32_t count)
{
	return ON_PROFILE(p, profile, group_set, group, members, count);
}

int pl_group_delete(struct pipeline *p, uint32_t profile, uint32_t group)
{
	return ON_PROFILE(p, profile, group_delete, group);
}

/* Finds the entry whose counter is asked for. Returns 0 or a negative errno. The caller holds the lock. */
static int counted_entry(struct pipeline *p, uint32_t table, uint64_t handle, struct entry **e)
{
	if (table >= TABLES)
		return -EINVAL;
	if (!table_shapes[table].counters)
		return -EPERM;
	*e = table_resources(&p->table[table], handle);
	return *e ? 0 : -ENOENT;
}

int pl_entry_counter_read(struct pipeline *p, uint32_t table, uint64_t handle, uint64_t *packets, uint64_t *bytes)
{
	struct entry *e;
	int error;

	pl_lock(p);
	error = counted_entry(p, table, handle, &e);
	if (!error) {
		*packets = e->packets;
		*bytes = e->bytes;
	}
	pl_unlock(p);
	return error;
}

int pl_entry_counter_write(struct pipeline *p, uint32_t table, uint64_t handle, uint64_t packets, uint64_t bytes)
{
	struct entry *e;
	int error;

	pl_lock(p);
	error = counted_entry(p, table, handle, &e);
	if (!error) {
		e->packets = packets;
		e->bytes = bytes;
	}
	pl_unlock(p);
	return error;
}

#endif
