/* What a sending host left to its network card: checksums, and cutting large TCP and UDP frames into packets.
 * A veth has no such hardware, so the frames arrive undone; a switch must see what a wire would carry. */
#ifndef AGGLAB_OFFLOAD_H
#define AGGLAB_OFFLOAD_H

#include "port.h"

/* Fills in the checksum; -1 when its place lies outside the frame (nothing is changed then). */
int offload_complete_checksum(struct frame *frame);

/* Cuts a frame with gso_size into packets, in scratch (FRAME_MAX bytes), each given to emit in order.
 * Returns how many, or -1 for a kind that cannot be cut. */
int offload_segment(const struct frame *frame, uint8_t *scratch,
		    void (*emit)(void *context, const uint8_t *data, uint32_t len), void *context);

#endif
