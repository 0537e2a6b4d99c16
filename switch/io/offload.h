/* What a sending host left to its network card: checksums, and cutting large TCP and UDP frames into packets.
 * A veth has no such hardware, so the frames arrive undone; a switch must see what a wire would carry. */
#ifndef AGGLAB_OFFLOAD_H
#define AGGLAB_OFFLOAD_H

#include "port.h"

/* Fills in the checksum; -1 when its place lies outside the frame (nothing is changed then). */
int offload_complete_checksum(struct frame *frame);

/* More packets than this from one frame are nothing that a host would leave to its network card. */
#define OFFLOAD_PACKETS_MAX 1024

/* Cuts a frame with gso_size into packets, each given to emit in order. A packet's headers are written in front of its
 * payload, over what has been emitted: the frame's bytes are lost, and a packet's once emit has returned.
 * Returns how many, or -1 for a frame whose headers contradict each other or are of a kind that cannot be cut; then
 * nothing was emitted, and nothing is changed. */
int offload_segment(struct frame *frame, void (*emit)(void *context, uint8_t *data, uint32_t len), void *context);

#endif
