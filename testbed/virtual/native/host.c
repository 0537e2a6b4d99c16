#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "host.h"

struct host *host_new(struct clock *clock, uint64_t object)
{
	struct host *host = calloc(1, sizeof(*host));

	if (!host)
		return NULL;
	host->clock = clock;
	host->object = object;
	return host;
}

void host_free(struct host *host)
{
	free(host->sockets);
	free(host);
}

void host_connect(struct host *host, struct link *out)
{
	host->out = out;
}

static struct socket *socket_at(const struct host *host, uint32_t port)
{
	for (uint64_t i = 0; i < host->socket_count; i++)
		if (host->sockets[i].port == port)
			return &host->sockets[i];
	return NULL;
}

void host_open(struct host *host, uint16_t port, const struct framing *framings, uint32_t count, struct agent *agent)
{
	struct socket *found = socket_at(host, port);

	if (!found) {
		if (!grow(host->clock, &host->sockets, &host->socket_room, host->socket_count, sizeof(*host->sockets)))
			return;
		found = &host->sockets[host->socket_count++];
	}
	*found = (struct socket){port, count, framings, agent};
}

static void send_frame(struct host *host, struct frame *frame)
{
	host->counts.sent++;
	link_send(host->out, frame);
}

void host_send(struct host *host, const uint8_t *data, uint32_t bytes)
{
	struct frame *frame = frame_copy(&host->clock->pool, data, bytes);

	if (frame)
		send_frame(host, frame);
	else
		host->clock->no_memory = 1;
}

void host_send_datagram(struct host *host, const struct framing *framing, const uint8_t *datagram, uint32_t bytes)
{
	struct frame *frame = frame_new(&host->clock->pool, LOWER_HEADER_BYTES + bytes);

	if (!frame) {
		host->clock->no_memory = 1;
		return;
	}
	framing_frame(framing, datagram, bytes, frame->data);
	send_frame(host, frame);
}

static void finish_if_done(struct agent *agent)
{
	if (agent->state.in_round && agent->endpoint->done)
		clock_ask(agent->clock, FINISH, agent->object, 0, NULL, 0);
}

/* Gives a datagram to an agent that is driven in C. */
static void take(struct agent *agent, uint32_t peer, const uint8_t *payload, uint32_t bytes)
{
	uint32_t kept = bytes < agent->inbox_bytes ? bytes : (uint32_t)agent->inbox_bytes;
	struct rows rows = {agent->inbox, agent->inbox_bytes, &kept, &peer, 1};

	memcpy(agent->inbox, payload, kept);
	agent->endpoint->take(agent->endpoint, agent->clock->now_ns, &rows);
	if (agent->endpoint->needs_python)
		clock_ask(agent->clock, ACT, agent->object, 0, NULL, 0);
	finish_if_done(agent);
	if (agent->state.driven)
		agent_poll(agent);
}

static void give(struct host *host, struct agent *agent, uint32_t peer, const uint8_t *payload, uint32_t bytes)
{
	if (!agent->state.alive)
		return;
	host->counts.used++;
	if (agent->state.driven)
		take(agent, peer, payload, bytes);
	else
		clock_ask(host->clock, DATAGRAM, agent->object, peer, payload, bytes);
}

static int is_from(const struct framing *framing, const uint8_t *frame)
{
	uint32_t port = (uint32_t)frame[34] << 8 | frame[35];

	return framing->other.port == port && !memcmp(framing->other.ip, frame + 26, 4);
}

/* Takes a frame with a datagram as hosts send it. Returns 0 for any other frame. */
static int receive_plain(struct host *host, const struct frame *frame)
{
	const struct socket *socket;
	const uint8_t *payload;
	uint32_t peer, bytes;

	if (frame->bytes < LOWER_HEADER_BYTES)
		return 0;
	socket = socket_at(host, (uint32_t)frame->data[36] << 8 | frame->data[37]);
	if (!socket)
		return 0;
	for (peer = socket->count; peer--;)
		if (is_from(&socket->framings[peer], frame->data))
			break;
	if (peer == UINT32_MAX)
		return 0;
	payload = framing_payload(&socket->framings[peer], frame->data, frame->bytes, &bytes);
	if (!payload)
		return 0;
	give(host, socket->agent, peer, payload, bytes);
	return 1;
}

void host_receive(struct clock *clock, void *node, uint16_t port, struct frame *frame)
{
	struct host *host = node;

	(void)port;
	host->counts.received++;
	if (!receive_plain(host, frame))
		clock_ask(clock, FRAME, host->object, 0, frame->data, frame->bytes);
	frame_free(&clock->pool, frame);
}

struct agent *agent_new(struct clock *clock, uint64_t object)
{
	struct agent *agent = calloc(1, sizeof(*agent));

	if (!agent)
		return NULL;
	agent->clock = clock;
	agent->object = object;
	agent->state.timer_ns = NEVER_NS;
	agent->state.alive = 1;
	return agent;
}

void agent_free(struct agent *agent)
{
	free(agent);
}

void agent_drive(struct agent *agent, struct endpoint *endpoint, uint8_t *inbox, uint64_t inbox_bytes, struct host *host,
		 const struct framing *framings, struct explained *explained)
{
	agent->endpoint = endpoint;
	agent->inbox = inbox;
	agent->inbox_bytes = inbox_bytes;
	agent->host = host;
	agent->framings = framings;
	agent->explained = explained;
}

/* A deadline has mostly moved on while its timer ran; then the timer is set again. */
static void on_timer(struct clock *clock, void *subject, int64_t due_ns)
{
	struct agent *agent = subject;

	if (due_ns != agent->state.timer_ns)
		return;
	agent->state.timer_ns = NEVER_NS;
	if (agent->state.driven && agent->endpoint->deadline_ns > clock->now_ns)
		agent_wake(agent, agent->endpoint->deadline_ns);
	else if (agent->state.driven)
		agent_poll(agent);
	else if (agent->state.alive)
		clock_ask(clock, TIMER, agent->object, 0, NULL, 0);
}

void agent_wake(struct agent *agent, int64_t due_ns)
{
	if (due_ns >= agent->state.timer_ns)
		return;
	agent->state.timer_ns = due_ns;
	clock_at(agent->clock, due_ns, on_timer, agent, due_ns);
}

/* Counts a packet that is sent again because its slot was hit. Returns whether it did. */
static int is_explained(const struct agent *agent, const struct pending *pending, uint32_t row)
{
	uint16_t slot = (uint16_t)row;
	uint32_t tag;

	if (!agent->explained || !agent->endpoint->rows_are_slots)
		return 0;
	memcpy(&tag, pending + 1, sizeof(tag));
	return hits_explain(agent->explained, slot, tag, slot, tag - 1, agent->clock->now_ns);
}

static void note_repeat(const struct agent *agent, uint32_t row)
{
	const struct pending *pending;

	if (row >= agent->endpoint->pending_rows)
		return;
	pending = endpoint_pending(agent->endpoint, row);
	if (pending->attempt && !is_explained(agent, pending, row))
		clock_ask(agent->clock, AGAIN, agent->object, row, NULL, 0);
}

static void send_row(struct agent *agent, uint32_t row)
{
	const struct outbox *outbox = &agent->endpoint->outbox;
	uint32_t peer = outbox_peer(outbox, row), bytes = outbox_length(outbox, row);
	const struct framing *framing = &agent->framings[peer];
	const uint8_t *datagram = outbox_frame(outbox, row);

	note_repeat(agent, row);
	if (framing_is_local(framing))
		clock_ask(agent->clock, LOCAL, agent->object, peer, datagram, bytes);
	else
		host_send_datagram(agent->host, framing, datagram, bytes);
}

void agent_poll(struct agent *agent)
{
	struct endpoint *e = agent->endpoint;
	int count = e->poll(e, agent->clock->now_ns);
	int64_t deadline_ns = e->deadline_ns;

	if (count < 0) {
		clock_ask(agent->clock, FAILED, agent->object, -count, NULL, 0);
		return;
	}
	for (int i = 0; i < count; i++)
		send_row(agent, e->queue[i]);
	finish_if_done(agent); /* these were the last of the round */
	agent_wake(agent, deadline_ns);
}
