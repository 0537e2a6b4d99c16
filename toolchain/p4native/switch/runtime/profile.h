/* Action profiles: members (an action with its arguments), and groups of members to choose from by a hash. */
#ifndef P4NATIVE_PROFILE_H
#define P4NATIVE_PROFILE_H

#include "entries.h"

struct profile_shape {
	uint32_t args_bytes; /* bytes of arguments of the action that has most */
	uint32_t actions;
	const uint32_t *action;
	bool selector;
};

struct member {
	uint32_t action;
	uint32_t users; /* entries, defaults and groups that refer to it */
	bool used;
	uint8_t args[];
};

struct group {
	bool used;
	uint32_t users;
	uint32_t count;
	uint32_t *member; /* ascending */
};

struct profile {
	const struct profile_shape *shape;
	uint32_t stride;
	uint32_t room, group_room;
	uint8_t *members;
	struct group *groups;
};

static inline struct member *profile_slot(const struct profile *f, uint32_t member)
{
	return (struct member *)(f->members + (size_t)member * f->stride);
}

/* Returns the member with that number, or NULL. */
static inline struct member *profile_member(const struct profile *f, uint32_t member)
{
	return member < f->room && profile_slot(f, member)->used ? profile_slot(f, member) : NULL;
}

static inline struct group *profile_group(const struct profile *f, uint32_t group)
{
	return group < f->group_room && f->groups[group].used ? &f->groups[group] : NULL;
}

/* Returns the member that an entry refers to, or member hash % n of a group of n; NULL for an empty group. */
static inline const struct member *profile_find(const struct profile *f, uint32_t target, uint64_t hash)
{
	const struct group *g;

	if (!(target & PL_GROUP))
		return profile_slot(f, target);
	g = &f->groups[target & ~PL_GROUP];
	return g->count ? profile_slot(f, g->member[hash % g->count]) : NULL;
}

static inline void profile_init(struct profile *f, const struct profile_shape *shape)
{
	f->shape = shape;
	f->stride = (uint32_t)((sizeof(struct member) + shape->args_bytes + 7) / 8 * 8);
}

static inline void profile_free(struct profile *f)
{
	for (uint32_t i = 0; i < f->group_room; i++)
		free(f->groups[i].member);
	free(f->groups);
	free(f->members);
}

/* Returns the count of users of an entry's member or group; NULL if it does not exist. */
static inline uint32_t *profile_users(const struct profile *f, uint32_t target)
{
	struct member *m;
	struct group *g;

	if (target & PL_GROUP) {
		g = profile_group(f, target & ~PL_GROUP);
		return g ? &g->users : NULL;
	}
	m = profile_member(f, target);
	return m ? &m->users : NULL;
}

/* Doubles an array; the new elements are zero. Returns NULL without memory, and changes nothing then. */
static inline void *array_grow(void *array, uint32_t *room, size_t size)
{
	uint32_t more = *room ? 2 * *room : 8;
	uint8_t *grown = realloc(array, more * size);

	if (!grown)
		return NULL;
	memset(grown + *room * size, 0, (more - *room) * size);
	*room = more;
	return grown;
}

static inline int member_add(struct profile *f, uint32_t action, const struct action_shape *shape,
			     const uint8_t *args, uint32_t *member)
{
	uint32_t i = 0;
	int error = check_action(f->shape->action, f->shape->actions, action, shape, args);

	if (error)
		return error;
	while (profile_member(f, i))
		i++;
	if (i == f->room) {
		void *grown = array_grow(f->members, &f->room, f->stride);

		if (!grown)
			return -ENOMEM;
		f->members = grown;
	}
	profile_slot(f, i)->used = true;
	profile_slot(f, i)->users = 0;
	profile_slot(f, i)->action = action;
	memcpy(profile_slot(f, i)->args, args, shape[action].args_bytes);
	*member = i;
	return 0;
}

static inline int member_modify(struct profile *f, uint32_t member, uint32_t action, const struct action_shape *shape,
				const uint8_t *args)
{
	struct member *m = profile_member(f, member);
	int error;

	if (!m)
		return -ENOENT;
	error = check_action(f->shape->action, f->shape->actions, action, shape, args);
	if (error)
		return error;
	m->action = action;
	memcpy(m->args, args, shape[action].args_bytes);
	return 0;
}

static inline int member_delete(struct profile *f, uint32_t member)
{
	struct member *m = profile_member(f, member);

	if (!m)
		return -ENOENT;
	if (m->users)
		return -EBUSY;
	m->used = false;
	return 0;
}

static inline int group_add(struct profile *f, uint32_t *group)
{
	uint32_t i = 0;

	if (!f->shape->selector)
		return -EPERM;
	while (profile_group(f, i))
		i++;
	if (i == f->group_room) {
		void *grown = array_grow(f->groups, &f->group_room, sizeof(*f->groups));

		if (!grown)
			return -ENOMEM;
		f->groups = grown;
	}
	f->groups[i] = (struct group){.used = true};
	*group = i;
	return 0;
}

static inline void group_count_users(struct profile *f, const struct group *g, uint32_t change)
{
	for (uint32_t i = 0; i < g->count; i++)
		profile_slot(f, g->member[i])->users += change;
}

static inline int compare_numbers(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return (x > y) - (x < y);
}

/* Sets a group's members. A member that is listed several times is chosen that much more often. */
static inline int group_set(struct profile *f, uint32_t group, const uint32_t *members, uint32_t count)
{
	struct group *g = profile_group(f, group);
	uint32_t *sorted;

	if (!g)
		return -ENOENT;
	for (uint32_t i = 0; i < count; i++) {
		if (!profile_member(f, members[i]))
			return -ENOENT;
	}
	sorted = malloc(((size_t)count + 1) * sizeof(*sorted));
	if (!sorted)
		return -ENOMEM;
	memcpy(sorted, members, count * sizeof(*sorted));
	qsort(sorted, count, sizeof(*sorted), compare_numbers);
	group_count_users(f, g, UINT32_MAX);
	free(g->member);
	g->member = sorted;
	g->count = count;
	group_count_users(f, g, 1);
	return 0;
}

static inline int group_delete(struct profile *f, uint32_t group)
{
	struct group *g = profile_group(f, group);

	if (!g)
		return -ENOENT;
	if (g->users)
		return -EBUSY;
	group_count_users(f, g, UINT32_MAX);
	free(g->member);
	*g = (struct group){0};
	return 0;
}

#endif
