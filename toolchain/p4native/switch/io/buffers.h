/* Joins frames of a queue for sending: datagrams that a network card could have cut from one buffer leave as that
 * buffer, which costs the kernel as much work as one packet. */
#ifndef P4NATIVE_BUFFERS_H
#define P4NATIVE_BUFFERS_H

#include <linux/virtio_net.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

#include "port.h"

/* The kernel refuses more segments than 64 before Linux 6.9 (UDP_MAX_SEGMENTS). */
#define BUFFER_PACKETS_MAX 64

/* Packets that leave as one buffer. bytes: the bytes of their frames on the wire. */
struct buffer {
	uint32_t packets;
	uint32_t bytes;
};

struct buffers {
	uint32_t count;
	struct buffer of[TX_BATCH];
	struct mmsghdr messages[TX_BATCH];
	struct virtio_net_hdr headers[TX_BATCH];
	struct iovec parts[2 * TX_BATCH];
};

/* Returns how many of the first frames, at most count, are bit for bit the segments of one buffer: UDP over IPv4, one
 * flow, equally long payloads (the last may be shorter), consecutive identifications, correct checksums. Returns at
 * least 1. */
uint32_t buffer_run(const struct iovec *frames, uint32_t count);

/* Turns count frames, at most TX_BATCH, into messages, in order. The messages refer to the frames; the headers of a
 * frame that begins a buffer of several are changed. frame_max: longer frames stay single; 0: all do. with_headers: set
 * for a packet socket with PACKET_VNET_HDR; otherwise all frames stay single. */
void buffers_make(struct buffers *buffers, struct iovec *frames, uint32_t count, int frame_max, bool with_headers);

#endif
