#include <stdlib.h>

#include "hits.h"

#define ROOM_AT_FIRST 1024 /* a power of two */
#define SPREAD UINT64_C(0x9E3779B97F4A7C15) /* 2^64 divided by the golden ratio */

struct place {
	uint64_t key;
	uint64_t used;
};

/* A key is at the place that place_of gives it, or at the first empty one after it. At most half of the places are used. */
struct hits {
	struct place *places;
	uint64_t room, count;
};

struct hits *hits_new(void)
{
	struct hits *hits = calloc(1, sizeof(*hits));

	if (!hits)
		return NULL;
	hits->room = ROOM_AT_FIRST;
	hits->places = calloc(hits->room, sizeof(*hits->places));
	if (!hits->places) {
		free(hits);
		return NULL;
	}
	return hits;
}

void hits_free(struct hits *hits)
{
	free(hits->places);
	free(hits);
}

static uint64_t key_of(uint16_t job, uint16_t slot, uint32_t tag)
{
	return (uint64_t)job << 48 | (uint64_t)slot << 32 | tag;
}

static struct place *place_of(const struct hits *hits, uint64_t key)
{
	uint64_t at = (key * SPREAD) >> 32;

	while (hits->places[at & (hits->room - 1)].used && hits->places[at & (hits->room - 1)].key != key)
		at++;
	return &hits->places[at & (hits->room - 1)];
}

static int make_room(struct hits *hits)
{
	struct hits larger = {.room = 2 * hits->room, .count = hits->count};

	if (2 * (hits->count + 1) <= hits->room)
		return 1;
	larger.places = calloc(larger.room, sizeof(*larger.places));
	if (!larger.places)
		return 0;
	for (uint64_t i = 0; i < hits->room; i++)
		if (hits->places[i].used)
			*place_of(&larger, hits->places[i].key) = hits->places[i];
	free(hits->places);
	*hits = larger;
	return 1;
}

int hits_add(struct hits *hits, uint16_t job, uint16_t slot, uint32_t tag)
{
	uint64_t key = key_of(job, slot, tag);
	struct place *place;

	if (!make_room(hits))
		return 0;
	place = place_of(hits, key);
	hits->count += !place->used;
	*place = (struct place){key, 1};
	return 1;
}

static int has(const struct hits *hits, uint16_t job, uint16_t slot, uint32_t tag)
{
	return place_of(hits, key_of(job, slot, tag))->used != 0;
}

int hits_explain(struct explained *explained, uint16_t slot, uint32_t tag, uint16_t slot_before, uint32_t tag_before,
		 int64_t now_ns)
{
	const struct hits *hits = explained->hits;

	if (!has(hits, explained->job, slot, tag) && !has(hits, explained->job, slot_before, tag_before))
		return 0;
	explained->count++;
	*explained->mended_ns = now_ns;
	return 1;
}
