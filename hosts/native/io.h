/* The structure in which hosts/driver.py, which mirrors it, gives datagrams to io.c. */
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

#endif
