/* How datagrams are given to io.c and taken from it. hosts/endpoint.py declares the structures. */
#ifndef AGGLAB_IO_H
#define AGGLAB_IO_H

#include "structures.h"

struct io;

/* Sends count rows of the outbox. Returns 0 or a negative errno. What a full queue does not take, or the network
 * refuses, is counted as unsent and left to the endpoint's timers. */
int io_send(struct io *io, const struct outbox *outbox, const uint32_t *queue, uint32_t count);

/* Waits as io_receive does. Returns 1 if datagrams came, 0 if not, or a negative errno. */
int io_receive_rows(struct io *io, int64_t gather_ns, int64_t wait_ns);

/* Gives the next datagrams that came; they are valid until the next call. Returns 0 if there are no more,
 * which has to happen before anything else is received. */
int io_next_rows(struct io *io, struct rows *rows);

#endif
