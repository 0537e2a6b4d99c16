/* Frames to send, in memory shared with the kernel: one system call sends all that wait. */
#ifndef AGGLAB_TX_RING_H
#define AGGLAB_TX_RING_H

#include <stdbool.h>
#include <stdint.h>

#include "slots.h"

struct tx_ring {
	int fd;		 /* -1: there is none */
	struct slots slots;
	uint32_t room;	  /* the longest frame a slot takes */
	uint32_t next;	  /* the slot to be filled */
	uint32_t waiting; /* filled, not sent yet: those before next */
	uint32_t waiting_bytes, longest; /* of those that wait, since none did */
	bool dropped;	  /* there are slots that the kernel has yet to pass over */
};

/* A ring for frames of at most room bytes, or a negative errno; then ring->fd is -1, and nothing need be closed. */
int tx_ring_open(struct tx_ring *ring, int ifindex, uint32_t room);
void tx_ring_close(struct tx_ring *ring);

/* Where the next frame goes, or NULL: it is longer than room, or the kernel still holds the slot. The kernel takes no
 * frame that is only an Ethernet header or less. */
uint8_t *tx_ring_reserve(struct tx_ring *ring, uint32_t len);
void tx_ring_commit(struct tx_ring *ring, uint32_t len);

/* The index-th frame that waits, and its length; NULL if it has been dropped. */
const uint8_t *tx_ring_frame(const struct tx_ring *ring, uint32_t index, uint32_t *len);

/* Sends what waits. 0: nothing waits any more; else the errno for which the first that waits was refused. */
int tx_ring_send(struct tx_ring *ring);
/* The index-th frame that waits shall not be sent. */
void tx_ring_drop(struct tx_ring *ring, uint32_t index);
/* Drops the first frame that waits, and waits for it no longer. */
void tx_ring_give_up_first(struct tx_ring *ring);

#endif
