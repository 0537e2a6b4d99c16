#include <stdlib.h>
#include <string.h>

#include "gathered.h"

struct version {
	struct version *next;
	uint8_t bytes[]; /* the results, then the sums */
};

struct gathered {
	struct gathered_settings settings;
	uint64_t chunks;
	struct version **first; /* the first version of each chunk */
};

struct gathered *gathered_new(const struct gathered_settings *settings)
{
	struct gathered *gathered = calloc(1, sizeof(*gathered));

	if (!gathered)
		return NULL;
	gathered->settings = *settings;
	gathered->chunks = (settings->elements + settings->chunk_elements - 1) / settings->chunk_elements;
	gathered->first = calloc(gathered->chunks ? gathered->chunks : 1, sizeof(*gathered->first));
	if (!gathered->first) {
		free(gathered);
		return NULL;
	}
	return gathered;
}

void gathered_free(struct gathered *gathered)
{
	for (uint64_t chunk = 0; chunk < gathered->chunks; chunk++) {
		while (gathered->first[chunk]) {
			struct version *next = gathered->first[chunk]->next;

			free(gathered->first[chunk]);
			gathered->first[chunk] = next;
		}
	}
	free(gathered->first);
	free(gathered);
}

static uint64_t elements_of(const struct gathered *gathered, uint64_t chunk)
{
	uint64_t left = gathered->settings.elements - chunk * gathered->settings.chunk_elements;

	return left < gathered->settings.chunk_elements ? left : gathered->settings.chunk_elements;
}

static uint64_t sums_bytes(const struct gathered *gathered, uint64_t count)
{
	return gathered->settings.has_sums ? count * sizeof(int32_t) : 0;
}

static struct version *version_new(const void *results, uint64_t bytes, const int32_t *sums, uint64_t more)
{
	struct version *version = malloc(sizeof(*version) + bytes + more);

	if (!version)
		return NULL;
	version->next = NULL;
	memcpy(version->bytes, results, bytes);
	if (more)
		memcpy(version->bytes + bytes, sums, more);
	return version;
}

/* Returns the number of the version that is equal to these results, which becomes a new one if there is none. */
static uint16_t number_of(struct gathered *gathered, uint64_t chunk, const void *results, const int32_t *sums)
{
	uint64_t count = elements_of(gathered, chunk), bytes = count * gathered->settings.value_bytes;
	uint64_t more = sums_bytes(gathered, count);
	struct version **at = &gathered->first[chunk];
	uint16_t number = 1;

	for (; *at; at = &(*at)->next, number++)
		if (!memcmp((*at)->bytes, results, bytes) && (!more || !memcmp((*at)->bytes + bytes, sums, more)))
			return number;
	if (number < UNCLEAR)
		*at = version_new(results, bytes, sums, more);
	return *at ? number : UNCLEAR;
}

void share_take(void *context, uint64_t first, uint64_t count, const void *results, const int32_t *sums)
{
	struct share *share = context;
	struct gathered *gathered = share->gathered;
	uint64_t chunk = first / gathered->settings.chunk_elements;
	uint16_t number, *had;

	if (chunk >= gathered->chunks || first % gathered->settings.chunk_elements ||
	    count != elements_of(gathered, chunk)) {
		share->misplaced++;
		return;
	}
	number = number_of(gathered, chunk, results, sums);
	had = &share->versions[chunk];
	*had = *had == NO_VERSION || *had == number ? number : UNCLEAR;
}

static const struct version *version_at(const struct gathered *gathered, uint64_t chunk, uint16_t number)
{
	const struct version *version = gathered->first[chunk];

	if (number == NO_VERSION || number == UNCLEAR)
		return NULL;
	while (--number)
		version = version->next;
	return version;
}

/* The values of a version from number `first` on, within its chunk. */
static void copy_values(const struct gathered *gathered, const struct version *version, uint64_t chunk, uint64_t first,
			uint64_t count, void *results, int32_t *sums)
{
	uint64_t value_bytes = gathered->settings.value_bytes;
	const uint8_t *of_sums = version->bytes + elements_of(gathered, chunk) * value_bytes;

	if (results)
		memcpy(results, version->bytes + first * value_bytes, count * value_bytes);
	if (sums)
		memcpy(sums, of_sums + first * sizeof(*sums), count * sizeof(*sums));
}

uint64_t share_copy(const struct share *share, uint64_t first, uint64_t count, void *results, int32_t *sums)
{
	const struct gathered *gathered = share->gathered;
	uint64_t begin = 0, copied = 0;

	for (uint64_t chunk = 0; chunk < gathered->chunks && copied < count; chunk++) {
		const struct version *version = version_at(gathered, chunk, share->versions[chunk]);
		uint64_t end = begin + elements_of(gathered, chunk), from = first + copied, some;

		if (!version)
			continue;
		if (from < end) {
			some = end - from < count - copied ? end - from : count - copied;
			copy_values(gathered, version, chunk, from - begin, some,
				    results ? (uint8_t *)results + copied * gathered->settings.value_bytes : NULL,
				    sums ? sums + copied : NULL);
			copied += some;
		}
		begin = end;
	}
	return copied;
}
