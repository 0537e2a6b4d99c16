/* Which packets leave in one datagram (README.md, "Fused packets"). */
#ifndef AGGLAB_OMNIREDUCE_FUSE_H
#define AGGLAB_OMNIREDUCE_FUSE_H

#include "endpoint.h"
#include "omnireduce_wire.h"
#include "state.h"

#define NO_BLOCK UINT32_MAX

/* Adds a column whose packet is laid out. */
void fuse_add(struct omnireduce_worker *w, uint32_t index, int64_t now_ns);

/* Queues the rows to send now. Packets without values are held until a packet with values follows them, more packets
 * come or their time is up. */
void fuse_send(struct omnireduce_worker *w, int64_t now_ns);

/* When to call fuse_send although nothing came; INT64_MAX if nothing is held. */
int64_t fuse_deadline_ns(const struct omnireduce_worker *w);

#endif
