/* Parser value sets: (key, mask) pairs, each field of a key padded to bytes. */
#ifndef P4NATIVE_VALUE_SET_H
#define P4NATIVE_VALUE_SET_H

#include "table.h"

struct value_set {
	uint32_t count;
	uint8_t *members; /* key, mask, key, mask, ... */
};

static inline bool value_set_has(const struct value_set *set, const uint8_t *key, uint32_t bytes)
{
	const uint8_t *member = set->members;

	for (uint32_t i = 0; i < set->count; i++, member += 2 * bytes) {
		if (matches_ternary(key, member, member + bytes, bytes))
			return true;
	}
	return false;
}

static inline int value_set_fill(struct value_set *set, const uint8_t *members, uint32_t count, uint32_t bytes)
{
	uint8_t *copy = malloc((size_t)count * 2 * bytes + 1);

	if (!copy)
		return -ENOMEM;
	memcpy(copy, members, (size_t)count * 2 * bytes);
	for (uint32_t i = 0; i < count; i++) {
		uint8_t *key = copy + (size_t)i * 2 * bytes;

		for (uint32_t j = 0; j < bytes; j++)
			key[j] &= key[bytes + j];
	}
	free(set->members);
	set->members = copy;
	set->count = count;
	return 0;
}

#endif
