/* Turns datagrams into Ethernet frames and back, as a host's kernel does. Mirrored in testbed/virtual/frames.py. */
#ifndef AGGLAB_FRAMING_H
#define AGGLAB_FRAMING_H

#include <stdint.h>

#define LOWER_HEADER_BYTES 42 /* Ethernet, IPv4, UDP */

/* One end of UDP. */
struct address {
	uint8_t mac[6];
	uint8_t ip[4];
	uint16_t port;
};

/* One host's traffic with one other end, both ways. */
struct framing {
	struct address own;
	struct address other;
};

/* Writes the frame that carries a datagram to the other end: LOWER_HEADER_BYTES, then the datagram. */
void framing_frame(const struct framing *framing, const uint8_t *payload, uint32_t bytes, uint8_t *frame);

/* Returns whether the other end is the host itself, so that no link carries the datagrams. */
int framing_is_local(const struct framing *framing);

/* Returns the datagram in a frame as hosts send it; NULL for any other frame, which may hold one all the same
 * (reception.py). */
const uint8_t *framing_payload(const struct framing *framing, const uint8_t *frame, uint32_t bytes,
			       uint32_t *payload_bytes);

#endif
