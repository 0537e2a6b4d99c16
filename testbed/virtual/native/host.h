/* A host in virtual time: sockets of agents, and agents that are driven here as long as nothing needs Python. The
 * structures that Python knows are declared in __init__.py.
 */
#ifndef AGGLAB_HOST_H
#define AGGLAB_HOST_H

#include "endpoint.h"
#include "framing.h"
#include "hits.h"
#include "host_state.h"
#include "link.h"

struct host;

struct agent {
	struct agent_state state;
	struct clock *clock;
	uint64_t object;
	struct endpoint *endpoint;
	uint8_t *inbox; /* room for one datagram that has arrived */
	uint64_t inbox_bytes;
	struct host *host;
	const struct framing *framings; /* headers for each of the endpoint's peers */
	struct explained *explained;
};

struct socket {
	uint32_t port;
	uint32_t count;
	const struct framing *framings; /* headers for each peer */
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

/* Opens an agent's socket; it replaces one with the same port. Python keeps ownership of the array. */
void host_open(struct host *host, uint16_t port, const struct framing *framings, uint32_t count, struct agent *agent);

void host_send(struct host *host, const uint8_t *data, uint32_t bytes);
void host_send_datagram(struct host *host, const struct framing *framing, const uint8_t *datagram, uint32_t bytes);

/* Receives a frame from the host's link, and owns it from then on. A deliver_function. */
void host_receive(struct clock *clock, void *node, uint16_t port, struct frame *frame);

struct agent *agent_new(struct clock *clock, uint64_t object);
void agent_free(struct agent *agent);

/* Sets the endpoint that the agent drives while `driven`, room for one datagram, the headers for each peer, and where
 * packets that are sent again are counted if it is known why. Python is told of all others. */
void agent_drive(struct agent *agent, struct endpoint *endpoint, uint8_t *inbox, uint64_t inbox_bytes, struct host *host,
		 const struct framing *framings, struct explained *explained);

/* Sets the event of the deadline to due_ns, unless it is earlier already. */
void agent_wake(struct agent *agent, int64_t due_ns);

/* Sends what a driven agent has due, and sets the event for its next deadline. */
void agent_poll(struct agent *agent);

#endif
