#include <stdlib.h>
#include <string.h>

#include "link.h"

#define BITS 8

struct link *link_new(struct clock *clock, const struct link_settings *settings, uint64_t object)
{
	struct link *link = calloc(1, sizeof(*link));

	if (!link)
		return NULL;
	link->clock = clock;
	link->settings = *settings;
	link->rate_bps = settings->rate_bps;
	link->object = object;
	return link;
}

void link_free(struct link *link)
{
	free(link->numbers);
	free(link->flights);
	free(link);
}

/* Returns how long a frame takes to be sent, rounded up to a nanosecond. */
static int64_t sending_ns(const struct link *link, uint64_t bytes)
{
	uint64_t nanobits = bytes * BITS * NS_PER_S;

	return link->rate_bps ? (int64_t)((nanobits + link->rate_bps - 1) / link->rate_bps) : 0;
}

void link_to(struct link *link, deliver_function deliver, void *node, uint16_t port)
{
	link->deliver = deliver;
	link->node = node;
	link->port = port;
}

void link_tap(struct link *link)
{
	link->tapped = 1;
}

void link_impair(struct link *link, struct decider **deciders, uint32_t count)
{
	link->deciders = deciders;
	link->decider_count = count;
}

void link_down(struct link *link, int32_t change)
{
	link->down += (uint32_t)change;
}

const uint64_t *link_dropped_numbers(const struct link *link)
{
	return link->numbers;
}

static struct flight *flight_at(const struct link *link, uint64_t index)
{
	return &link->flights[(link->head + index) & (link->room - 1)];
}

void note_hit(struct clock *clock, const struct frame *frame)
{
	clock_ask(clock, HIT, 0, 0, frame->data, frame->bytes);
}

/* Sets when a frame is sent, after everything before it. */
static void schedule(struct link *link, struct flight *flight)
{
	flight->begin_ns = link->clock->now_ns > link->free_ns ? link->clock->now_ns : link->free_ns;
	link->free_ns = flight->begin_ns + sending_ns(link, flight->bytes);
	flight->arrive_ns = link->free_ns + (int64_t)link->settings.delay_ns;
}

/* Returns how many frames are not begun, and sets their bytes. They are the last ones. */
static uint64_t not_begun(const struct link *link, uint64_t *bytes)
{
	uint64_t count = 0;

	*bytes = 0;
	for (; count < link->counts.in_flight; count++) {
		const struct flight *flight = flight_at(link, link->counts.in_flight - 1 - count);

		if (flight->begin_ns <= link->clock->now_ns)
			break;
		*bytes += flight->bytes;
	}
	return count;
}

/* Returns whether the queue has no room. All flights are an upper bound that is quick to check. */
static int is_full(const struct link *link, uint64_t size)
{
	uint64_t packets, bytes;

	if (!link->rate_bps || link->free_ns <= link->clock->now_ns)
		return 0;
	if (link->settings.queue_bytes) {
		if (link->flying_bytes + size <= link->settings.queue_bytes)
			return 0;
		not_begun(link, &bytes);
		return bytes + size > link->settings.queue_bytes;
	}
	if (link->counts.in_flight < link->settings.queue_packets)
		return 0;
	packets = not_begun(link, &bytes);
	return packets >= link->settings.queue_packets;
}

static int make_room(struct link *link)
{
	uint64_t old = link->room;

	if (link->counts.in_flight < old)
		return 1;
	if (!grow(link->clock, &link->flights, &link->room, link->counts.in_flight, sizeof(*link->flights)))
		return 0;
	/* Flights that had wrapped around in the old ring follow the others in the new one. */
	memcpy(link->flights + old, link->flights, link->head * sizeof(*link->flights));
	return 1;
}

static void arrive(struct clock *clock, void *subject, int64_t schedule_number);

static void set_off(struct link *link)
{
	const struct flight *first = flight_at(link, 0);

	clock_at_with(link->clock, first->arrive_ns, arrive, link, link->schedule, first->frame);
}

/* Puts a frame in the ring. */
static void join(struct link *link, const struct flight *flight)
{
	if (!make_room(link))
		return;
	*flight_at(link, link->counts.in_flight++) = *flight;
	if (link->counts.in_flight == 1)
		set_off(link);
}

void link_send(struct link *link, struct frame *frame)
{
	struct flight flight = {.frame = frame, .bytes = frame->bytes};

	if (is_full(link, frame->bytes)) {
		link->counts.refused++;
		note_hit(link->clock, frame);
		frame_free(&link->clock->pool, frame);
		return;
	}
	link->counts.packets++;
	link->counts.bytes += frame->bytes;
	link->flying_bytes += frame->bytes;
	schedule(link, &flight);
	join(link, &flight);
}

void link_send_copy(struct link *link, const uint8_t *data, uint32_t bytes)
{
	struct frame *frame = frame_copy(&link->clock->pool, data, bytes);

	if (frame)
		link_send(link, frame);
	else
		link->clock->no_memory = 1;
}

static void hand_over(struct link *link, struct frame *frame)
{
	link->counts.handed_over++;
	if (link->tapped)
		clock_ask(link->clock, ARRIVED, link->object, 0, frame->data, frame->bytes);
	if (link->deliver) {
		link->deliver(link->clock, link->node, link->port, frame);
		return;
	}
	clock_ask(link->clock, FRAME, link->object, 0, frame->data, frame->bytes);
	frame_free(&link->clock->pool, frame);
}

static void let_go(struct clock *clock, void *subject, int64_t number)
{
	struct frame *frame = subject;
	struct link *link = frame->holder;

	(void)clock, (void)number;
	link->counts.held--;
	hand_over(link, frame);
}

static void hand_over_after(struct link *link, int64_t delay_ns, struct frame *frame)
{
	if (!frame) {
		link->clock->no_memory = 1;
	} else if (delay_ns) {
		link->counts.held++;
		frame->holder = link;
		clock_at(link->clock, link->clock->now_ns + delay_ns, let_go, frame, 0);
	} else {
		hand_over(link, frame);
	}
}

static void drop(struct link *link, uint64_t k, struct frame *frame)
{
	link->counts.dropped++;
	if (link->counts.numbers < NUMBERS_KEPT &&
	    grow(link->clock, &link->numbers, &link->numbers_room, link->counts.numbers, sizeof(k)))
		link->numbers[link->counts.numbers++] = k;
	frame_free(&link->clock->pool, frame);
}

/* Delivers the frame, then its copies, each as a frame of its own. */
static void deliver_all(struct link *link, const struct decision *decision, struct frame *frame)
{
	struct pool *pool = &link->clock->pool;
	struct frame *copies[decision->copies + 1];

	for (uint32_t i = 0; i < decision->copies; i++)
		copies[i] = frame_copy(pool, frame->data, frame->bytes);
	link->counts.copied += decision->copies;
	hand_over_after(link, decision->late_ns, frame);
	for (uint32_t i = 0; i < decision->copies; i++)
		hand_over_after(link, decision->late_ns + decision->copies_ns[i], copies[i]);
}

static void impair(struct link *link, uint64_t k, struct frame *frame)
{
	uint32_t count = link->decider_count;
	int64_t copies_ns[count];
	uint64_t flipped[count];
	struct decision decision = {.copies_ns = copies_ns, .flipped = flipped};

	for (uint32_t i = 0; i < count; i++)
		decide(link->deciders[i], k, frame->bytes, &decision);
	if (decision.dropped || decision.flips || decision.late_ns)
		note_hit(link->clock, frame);
	if (decision.dropped) {
		drop(link, k, frame);
		return;
	}
	link->counts.corrupted += decision.flips > 0;
	for (uint32_t i = 0; i < decision.flips; i++)
		flip(frame->data, flipped[i]);
	deliver_all(link, &decision, frame);
}

static struct frame *take_first(struct link *link)
{
	struct flight *flight = flight_at(link, 0);

	link->head = (link->head + 1) & (link->room - 1);
	link->counts.in_flight--;
	link->flying_bytes -= flight->bytes;
	return flight->frame;
}

static void arrive(struct clock *clock, void *subject, int64_t schedule_number)
{
	struct link *link = subject;
	struct frame *frame;
	uint64_t k;

	if (schedule_number != link->schedule)
		return;
	frame = take_first(link);
	if (link->counts.in_flight)
		set_off(link);
	k = link->counts.seen++;
	if (link->down) {
		link->counts.lost++;
		note_hit(clock, frame);
		frame_free(&clock->pool, frame);
	} else if (link->decider_count) {
		impair(link, k, frame);
	} else {
		hand_over(link, frame);
	}
}

void link_change_rate(struct link *link, uint64_t rate_bps)
{
	uint64_t bytes, waiting = not_begun(link, &bytes), first = link->counts.in_flight - waiting;

	link->rate_bps = rate_bps;
	if (waiting)
		link->free_ns = flight_at(link, first)->begin_ns;
	for (uint64_t i = first; i < link->counts.in_flight; i++)
		schedule(link, flight_at(link, i));
	link->schedule++;
	if (link->counts.in_flight)
		set_off(link);
}

void link_look(const struct link *link, struct look *look)
{
	uint64_t begun;

	look->waiting_packets = not_begun(link, &look->waiting_bytes);
	look->carried_bytes = link->counts.bytes - look->waiting_bytes;
	begun = link->counts.in_flight - look->waiting_packets;
	/* Of the frames that are begun, only the last can still be being sent: its time follows from free_ns. */
	for (uint64_t i = begun; i--;) {
		const struct flight *flight = flight_at(link, i);

		if (flight->arrive_ns - (int64_t)link->settings.delay_ns <= link->clock->now_ns)
			break;
		look->carried_bytes -= flight->bytes;
	}
}
