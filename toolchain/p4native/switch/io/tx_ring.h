/* Frames to send, in memory shared with the kernel: one system call sends all that wait. */
#ifndef P4NATIVE_TX_RING_H
#define P4NATIVE_TX_RING_H

#include <stdbool.h>
#include <stdint.h>

#include "slots.h"

struct tx_ring {
	int fd;		 /* -1: there is none */
	struct slots slots;
	uint32_t room;	  /* the longest frame a slot takes */
	uint32_t next;	  /* the slot to be filled */
	uint32_t waiting; /* how many slots before next are filled but not sent yet */
	uint32_t waiting_bytes, longest; /* bytes of all waiting frames, and of the longest */
	bool dropped;	  /* there are dropped slots that the kernel has not passed over yet */
};

/* Opens a ring for frames of at most room bytes. Returns 0 or a negative errno; then ring->fd is -1, and nothing need
 * be closed. */
int tx_ring_open(struct tx_ring *ring, int ifindex, uint32_t room);
void tx_ring_close(struct tx_ring *ring);

/* Returns where the next frame goes, or NULL if it is longer than room or the kernel still holds the slot. The kernel
 * refuses a frame that is only an Ethernet header or less. */
uint8_t *tx_ring_reserve(struct tx_ring *ring, uint32_t len);
void tx_ring_commit(struct tx_ring *ring, uint32_t len);

/* Returns the index-th waiting frame, and its length; NULL if it has been dropped. */
const uint8_t *tx_ring_frame(const struct tx_ring *ring, uint32_t index, uint32_t *len);

/* Sends the waiting frames. Returns 0 if none is left, otherwise the errno with which the first was refused. */
int tx_ring_send(struct tx_ring *ring);
/* Drops the index-th waiting frame, so that it is not sent. */
void tx_ring_drop(struct tx_ring *ring, uint32_t index);
/* Drops the first waiting frame, and removes it from the waiting ones. */
void tx_ring_give_up_first(struct tx_ring *ring);

#endif
