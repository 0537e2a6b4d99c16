/* A host in virtual time: sockets of agents, and agents that are driven here as long as nothing needs Python. The
 * structures up to `struct repeat` are mirrored in testbed/virtual/hosts.py and workers.py.
 */
#ifndef AGGLAB_HOST_H
#define AGGLAB_HOST_H

#include "endpoint.h"
#include "framing.h"
#include "hits.h"
#include "link.h"

struct host_counts {
	uint64_t received; /* frames */
	uint64_t used;     /* datagrams in them that a program took */
	uint64_t sent;     /* frames */
};

struct agent_state {
	int64_t timer_ns; /* when its deadline's event comes, NEVER_NS if none does */
	uint32_t alive;   /* its program runs, and its sockets take datagrams */
	uint32_t driven;  /* in a round that needs nothing of Python until it ends */
};

/* What Python is told of a packet that is sent again. */
struct repeat {
	int64_t first_sent_ns;
	uint32_t tag;
	uint32_t spare;
};

struct host;

struct agent {
	struct agent_state state;
	struct clock *clock;
	uint64_t object;
	struct endpoint endpoint;
	struct host *host;
	const struct framing *framing; /* to the endpoint's only peer */
	struct explained *explained;
};

struct socket {
	uint32_t port;
	uint32_t count;
	const struct framing *framings; /* to each peer */
	struct agent *agent;
};

struct host {
	struct host_counts counts;
	struct clock *clock;
	uint64_t object;
	struct link *out;
	struct socket *sockets;
	uint64_t socket_count, socket_room;
};

struct host *host_new(struct clock *clock, uint64_t object);
void host_free(struct host *host);
void host_connect(struct host *host, struct link *out);

/* An agent's socket, instead of one of the same port. The array stays Python's. */
void host_open(struct host *host, uint16_t port, const struct framing *framings, uint32_t count, struct agent *agent);

void host_send(struct host *host, const uint8_t *data, uint32_t bytes);
void host_send_datagram(struct host *host, const struct framing *framing, const uint8_t *datagram, uint32_t bytes);

/* A frame, which is the host's from then on, has come over its link. Of the type deliver_function. */
void host_receive(struct clock *clock, void *node, uint16_t port, struct frame *frame);

struct agent *agent_new(struct clock *clock, uint64_t object);
void agent_free(struct agent *agent);

/* Which endpoint the agent drives while `driven`, how its datagrams travel, and where those that are sent again are
 * counted if it is known why; Python is told of all others. */
void agent_drive(struct agent *agent, const struct endpoint *endpoint, struct host *host,
		 const struct framing *framing, struct explained *explained);

/* The deadline's event comes at due_ns, unless it does sooner. */
void agent_wake(struct agent *agent, int64_t due_ns);

/* Sends what is due, and sees to it that the next deadline is not missed. Of a driven agent. */
void agent_poll(struct agent *agent);

#endif
