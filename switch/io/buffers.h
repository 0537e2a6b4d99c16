/* What the frames of a queue are sent as: runs of datagrams that a network card could have cut from one buffer leave as
 * that buffer, with which the kernel does the work of one packet. */
#ifndef AGGLAB_BUFFERS_H
#define AGGLAB_BUFFERS_H

#include <linux/virtio_net.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

#include "port.h"

/* The kernel refuses more segments than 64 before Linux 6.9 (UDP_MAX_SEGMENTS). */
#define BUFFER_PACKETS_MAX 64

/* Of packets that leave as one. bytes: of their frames, as they are on the wire. */
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

/* How many of the first frames, count at most, are equal to the segments of one buffer, bit for bit: UDP over IPv4 of
 * one flow, of equal payloads (the last may be shorter), consecutive identifications, right checksums. At least 1. */
uint32_t buffer_run(const struct iovec *frames, uint32_t count);

/* Turns count frames, TX_BATCH at most, into messages, in order; they refer to the frames, and the headers of those that
 * begin a buffer of several are changed. frame_max: frames that are longer stay single; 0: all do. with_headers: for a
 * packet socket with PACKET_VNET_HDR; without, all frames stay single. */
void buffers_make(struct buffers *buffers, struct iovec *frames, uint32_t count, int frame_max, bool with_headers);

#endif
