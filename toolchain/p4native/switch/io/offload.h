/* Work that a sending host left to its network card: checksums, and cutting large TCP and UDP frames into packets. A
 * veth has no such hardware, so the frames arrive unfinished; but a switch must see what a wire would carry. */
#ifndef P4NATIVE_OFFLOAD_H
#define P4NATIVE_OFFLOAD_H

#include "port.h"

/* Fills in the checksum. Returns -1 and changes nothing if its offset lies outside the frame. */
int offload_complete_checksum(struct frame *frame);

/* No host leaves it to its network card to cut a frame into more packets than this. */
#define OFFLOAD_PACKETS_MAX 1024

/* The last bytes of a packet, and their csum_words (csum_words.h). */
struct known_sum {
	const uint8_t *bytes;
	uint32_t len, sum;
};

typedef void offload_emit(void *context, uint8_t *data, uint32_t len, const struct known_sum *known);

/* Cuts a frame with gso_size into packets, and calls emit with each in order. A packet's headers are written in front
 * of its payload, over bytes that have been emitted: so the frame is destroyed, and a packet is valid only until emit
 * returns. Returns how many packets, or -1 for a frame whose headers contradict each other or are of a kind that cannot
 * be cut; then nothing is emitted or changed. */
int offload_segment(struct frame *frame, offload_emit *emit, void *context);

#endif
