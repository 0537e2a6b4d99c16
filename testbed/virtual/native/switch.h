/* A switch in virtual time: an instance of the compiled program between its links. `struct switch_counts` is mirrored
 * in testbed/virtual/switches.py.
 */
#ifndef AGGLAB_SWITCH_H
#define AGGLAB_SWITCH_H

#include "link.h"
#include "pipeline.h"

struct switch_counts {
	uint64_t received;
	uint64_t processed;
	uint64_t unheard; /* frames that came while no program ran */
	uint64_t waiting; /* frames inside at present */
};

/* A program's functions of pipeline.h. */
struct program {
	void (*lock)(struct pipeline *p);
	void (*unlock)(struct pipeline *p);
	void (*process)(struct pipeline *p, uint16_t port, const uint8_t *frame, uint32_t len, uint64_t now_us,
			const struct pl_sink *sink);
};

struct port {
	struct link *out;
	uint64_t sent;
};

struct switch_node {
	struct switch_counts counts;
	struct clock *clock;
	uint64_t delay_ns; /* how long each frame stays inside; frames keep their order */
	uint64_t object;
	uint32_t watched; /* whether Python is told of every frame that is processed and sent */

	struct program program;
	struct pipeline *pipeline; /* NULL while none runs */
	uint64_t starts;           /* how many instances have been started: tells them apart */

	struct port *ports;
	uint32_t port_count;
	struct frame *leaving; /* the copy that the pipeline is writing */
};

struct switch_node *switch_new(struct clock *clock, uint64_t delay_ns, uint64_t object);
void switch_free(struct switch_node *node);

/* Connects a port to a link, by which its frames leave. Returns 0 without memory. */
int switch_connect(struct switch_node *node, uint16_t port, struct link *out);

/* Runs another instance from now on; NULL: none. */
void switch_start(struct switch_node *node, struct pipeline *pipeline, const struct program *program);

void switch_watch(struct switch_node *node, uint32_t watched);
uint64_t switch_sent(const struct switch_node *node, uint16_t port);

/* Receives a frame at a port, and owns it from then on. A deliver_function. */
void switch_receive(struct clock *clock, void *node, uint16_t port, struct frame *frame);
void switch_receive_copy(struct switch_node *node, uint16_t port, const uint8_t *data, uint32_t bytes);

#endif
