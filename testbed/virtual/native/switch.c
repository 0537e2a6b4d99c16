#include <stdlib.h>

#include "switch.h"

#define NS_PER_US 1000

struct switch_node *switch_new(struct clock *clock, uint64_t delay_ns, uint64_t object)
{
	struct switch_node *node = calloc(1, sizeof(*node));

	if (!node)
		return NULL;
	node->clock = clock;
	node->delay_ns = delay_ns;
	node->object = object;
	return node;
}

void switch_free(struct switch_node *node)
{
	free(node->ports);
	free(node);
}

int switch_connect(struct switch_node *node, uint16_t port, struct link *out)
{
	uint32_t count = port + 1u > node->port_count ? port + 1u : node->port_count;
	struct port *ports = realloc(node->ports, count * sizeof(*ports));

	if (!ports)
		return 0;
	for (uint32_t i = node->port_count; i < count; i++)
		ports[i] = (struct port){0};
	ports[port].out = out;
	node->ports = ports;
	node->port_count = count;
	return 1;
}

void switch_start(struct switch_node *node, struct pipeline *pipeline, const struct program *program)
{
	node->pipeline = pipeline;
	node->starts++;
	if (program)
		node->program = *program;
}

void switch_watch(struct switch_node *node, uint32_t watched)
{
	node->watched = watched;
}

uint64_t switch_sent(const struct switch_node *node, uint16_t port)
{
	return port < node->port_count ? node->ports[port].sent : 0;
}

static uint8_t *reserve(void *context, uint16_t port, uint32_t max_len)
{
	struct switch_node *node = context;

	(void)port;
	node->leaving = frame_new(&node->clock->pool, max_len);
	if (!node->leaving) {
		node->clock->no_memory = 1;
		return NULL;
	}
	return node->leaving->data;
}

static void commit(void *context, uint16_t port, uint32_t len)
{
	struct switch_node *node = context;
	struct frame *frame = node->leaving;

	frame->bytes = len;
	if (node->watched)
		clock_ask(node->clock, EMITTED, node->object, port, frame->data, len);
	if (port >= node->port_count || !node->ports[port].out) {
		frame_free(&node->clock->pool, frame);
		return;
	}
	node->ports[port].sent++;
	link_send(node->ports[port].out, frame);
}

static void lose(struct switch_node *node, const struct frame *frame)
{
	node->counts.unheard++;
	note_hit(node->clock, frame);
}

static void process(struct switch_node *node, uint16_t port, struct frame *frame)
{
	struct pl_sink sink = {node, reserve, commit};
	uint64_t now_us = (uint64_t)node->clock->now_ns / NS_PER_US;

	if (node->pipeline) {
		node->counts.processed++;
		node->program.lock(node->pipeline);
		node->program.process(node->pipeline, port, frame->data, frame->bytes, now_us, &sink);
		node->program.unlock(node->pipeline);
		if (node->watched)
			clock_ask(node->clock, PROCESSED, node->object, port, frame->data, frame->bytes);
	} else {
		lose(node, frame);
	}
	frame_free(&node->clock->pool, frame);
}

/* Processes a frame after the delay, unless the program that ran when it came is gone. */
static void process_later(struct clock *clock, void *subject, int64_t port)
{
	struct frame *frame = subject;
	struct switch_node *node = frame->holder;

	node->counts.waiting--;
	if (frame->number == node->starts) {
		process(node, (uint16_t)port, frame);
	} else {
		lose(node, frame);
		frame_free(&clock->pool, frame);
	}
}

void switch_receive(struct clock *clock, void *subject, uint16_t port, struct frame *frame)
{
	struct switch_node *node = subject;

	node->counts.received++;
	if (!node->delay_ns) {
		process(node, port, frame);
		return;
	}
	node->counts.waiting++;
	frame->holder = node;
	frame->number = node->starts;
	clock_at(clock, clock->now_ns + (int64_t)node->delay_ns, process_later, frame, port);
}

void switch_receive_copy(struct switch_node *node, uint16_t port, const uint8_t *data, uint32_t bytes)
{
	struct frame *frame = frame_copy(&node->clock->pool, data, bytes);

	if (frame)
		switch_receive(node->clock, node, port, frame);
	else
		node->clock->no_memory = 1;
}
