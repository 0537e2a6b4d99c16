/* Which packets leave in one datagram. */
#include "fuse.h"

#include <endian.h>
#include <string.h>

static struct omnireduce_column *on_list(const struct omnireduce_worker *w, uint32_t at)
{
	return &w->columns[w->ready[at]];
}

/* Returns the block that a packet of the column names. */
static uint32_t named_block(const struct omnireduce_column *column)
{
	return column->kind == OMNIREDUCE_OPENING ? 0 : column->block;
}

static int fits_entry(const struct omnireduce_column *column)
{
	return column->next == NO_BLOCK || column->next - named_block(column) < OMNIREDUCE_NOTHING_AHEAD;
}

void fuse_add(struct omnireduce_worker *w, uint32_t index, int64_t now_ns)
{
	if (!w->ready_count)
		w->held_since_ns = now_ns;
	w->ready[w->ready_count++] = index;
}

/* Packets are held for at most a quarter of a round trip. Meanwhile the other columns' answers are on their way, so the
 * links stay full. */
int64_t fuse_deadline_ns(const struct omnireduce_worker *w)
{
	return w->ready_count ? w->held_since_ns + w->endpoint.recoveries->srtt_ns / 4 : INT64_MAX;
}

/* How many entries can go with a column's packet. */
static uint32_t entries_with(const struct omnireduce_worker *w, const struct omnireduce_column *column)
{
	if (column->has_values)
		return w->values_entries;
	return column->kind == OMNIREDUCE_OPENING ? w->opening_entries : w->bare_entries;
}

/* Returns how many columns leave in the next datagram, from `at` on. The last of them is the packet itself, the others
 * are its entries. The switch takes the entries first, so answers come in the order in which columns became ready. */
static uint32_t next_group(const struct omnireduce_worker *w, uint32_t at)
{
	uint32_t end = at;

	for (; end < w->ready_count; end++) {
		const struct omnireduce_column *column = on_list(w, end);
		uint32_t most = entries_with(w, column);

		if (end - at > most)
			break;
		if (column->has_values || end - at == most || !fits_entry(column))
			return end + 1 - at;
	}
	return end - at;
}

static void put_entry(const struct omnireduce_worker *w, uint32_t at, uint8_t *to)
{
	const struct omnireduce_column *column = on_list(w, at);
	uint32_t block = named_block(column);
	uint32_t ahead = column->next == NO_BLOCK ? OMNIREDUCE_NOTHING_AHEAD : column->next - block;
	struct omnireduce_entry entry = {
		.slot = htobe16((uint16_t)w->ready[at]),
		.tag = htobe32(column->tag),
		.block = htobe32(block),
		.ahead = htobe16((uint16_t)ahead),
		.exponent = column->exponent,
	};

	memcpy(to, &entry, sizeof(entry));
}

/* Lays a datagram out in a row of its own: each column keeps its packet, should it have to be sent again. */
static void put_datagram(struct omnireduce_worker *w, uint32_t row, uint32_t at, uint32_t count)
{
	uint32_t last = w->ready[at + count - 1], length = outbox_length(&w->endpoint.outbox, last);
	uint8_t *frame = endpoint_row(&w->endpoint, row);
	struct omnireduce_header *header = (struct omnireduce_header *)frame; /* packed */

	memcpy(frame, endpoint_row(&w->endpoint, last), length);
	header->kind |= OMNIREDUCE_FUSED;
	for (uint32_t i = 0; i < count - 1; i++, length += OMNIREDUCE_ENTRY_BYTES)
		put_entry(w, at + i, frame + length);
	outbox_set_length(&w->endpoint.outbox, row, length);
	if (w->columns[last].kind == OMNIREDUCE_OPENING)
		w->openings_fused += count - 1;
	else
		w->blocks_fused += count - 1;
}

/* Returns whether the last group on the list is due: nothing more can join it, or its time is up. OPENINGs never wait,
 * so they are alone on the list. */
static int is_due(const struct omnireduce_worker *w, uint32_t at, uint32_t count, int64_t now_ns)
{
	const struct omnireduce_column *last = on_list(w, at + count - 1);

	return last->has_values || last->kind == OMNIREDUCE_OPENING || count > w->bare_entries ||
	       count == w->endpoint.recoveries->in_flight || fuse_deadline_ns(w) <= now_ns;
}

void fuse_send(struct omnireduce_worker *w, int64_t now_ns)
{
	uint32_t free_row = w->window, at = 0;

	while (at < w->ready_count) {
		uint32_t count = next_group(w, at), row;

		if (at + count == w->ready_count && !is_due(w, at, count, now_ns))
			break;
		row = count > 1 ? free_row++ : w->ready[at];
		if (count > 1)
			put_datagram(w, row, at, count);
		endpoint_queue(&w->endpoint, row);
		endpoint_count_sent(&w->endpoint, row);
		for (uint32_t i = 0; i < count; i++)
			recovery_send(w->endpoint.recoveries, &on_list(w, at + i)->pending, now_ns);
		at += count;
	}
	if (!at)
		return;
	w->ready_count -= at;
	memmove(w->ready, w->ready + at, w->ready_count * sizeof(*w->ready));
	w->held_since_ns = now_ns;
}
