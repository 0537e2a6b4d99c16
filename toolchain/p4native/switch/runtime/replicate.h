/* Multicast groups and clone sessions: lists of (port, rid), found by number. */
#ifndef P4NATIVE_REPLICATE_H
#define P4NATIVE_REPLICATE_H

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "pipeline.h"

#define GROUPS 65536
#define SESSIONS 32768
#define PAGE_LISTS 256

struct replicas {
	uint32_t count;
	uint32_t max_bytes; /* copies are cut to this length */
	struct pl_replica replica[];
};

/* Lists by number. Few numbers are used, so a page of pointers is made when the first list is put into it. */
struct replicas_page {
	struct replicas *list[PAGE_LISTS];
};

static inline const struct replicas *replicas_find(struct replicas_page *const *pages, uint32_t number)
{
	const struct replicas_page *page = pages[number / PAGE_LISTS];

	return page ? page->list[number % PAGE_LISTS] : NULL;
}

static inline void replicas_free(struct replicas_page **pages, uint32_t numbers)
{
	for (uint32_t i = 0; i < numbers / PAGE_LISTS; i++) {
		if (!pages[i])
			continue;
		for (uint32_t j = 0; j < PAGE_LISTS; j++)
			free(pages[i]->list[j]);
		free(pages[i]);
	}
}

/* Sorts as BMv2 does: rids in the order in which they first appear, the ports of a rid ascending. */
static inline void replicas_sort(struct replicas *list)
{
	for (uint32_t i = 1; i < list->count; i++) {
		struct pl_replica moved = list->replica[i];
		uint32_t first = 0, at;

		while (first < i && list->replica[first].rid != moved.rid)
			first++;
		if (first == i)
			continue;
		for (at = first; at < i && list->replica[at].rid == moved.rid &&
				 list->replica[at].port <= moved.port;)
			at++;
		memmove(&list->replica[at + 1], &list->replica[at], (i - at) * sizeof(moved));
		list->replica[at] = moved;
	}
}

/* Makes a list in that order; an empty list becomes NULL. */
static inline int replicas_new(const struct pl_replica *replicas, uint32_t count, uint32_t max_bytes,
			       struct replicas **list)
{
	*list = NULL;
	if (!count)
		return 0;
	*list = malloc(sizeof(**list) + count * sizeof(*replicas));
	if (!*list)
		return -ENOMEM;
	(*list)->count = count;
	(*list)->max_bytes = max_bytes;
	memcpy((*list)->replica, replicas, count * sizeof(*replicas));
	replicas_sort(*list);
	return 0;
}

#endif
