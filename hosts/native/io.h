/* The structures by which datagrams are given to io.c and taken from it. hosts/native_endpoint.py mirrors the first. */
#ifndef AGGLAB_IO_H
#define AGGLAB_IO_H

#include <stdint.h>

/* Datagrams that may have to be sent, one per row. lengths and peers (indices) are columns of 32-bit numbers, each a
 * stride apart. */
struct outbox {
	const uint8_t *frames;
	uint64_t frame_stride;
	const uint8_t *lengths;
	uint64_t length_stride;
	const uint8_t *peers;
	uint64_t peer_stride;
};

/* Datagrams that came, row_bytes apart. */
struct rows {
	const uint8_t *first;
	uint64_t row_bytes;
	const uint32_t *lengths;
	uint32_t count;
};

struct io;

/* Sends count rows of the outbox. Returns 0 or a negative errno. What a full queue does not take, or the network
 * refuses, is counted as unsent and left to the endpoint's timers. */
int io_send(struct io *io, const struct outbox *outbox, const uint32_t *queue, uint32_t count);

/* Waits as io_receive does. Returns 1 if datagrams came, 0 if not, or a negative errno. */
int io_receive_rows(struct io *io, int64_t gather_ns, int64_t wait_ns);

/* Gives the next datagrams of one sender that came; they are valid until the next call. Returns 0 if there are no more,
 * which has to happen before anything else is received. */
int io_next_rows(struct io *io, struct rows *rows);

#endif
