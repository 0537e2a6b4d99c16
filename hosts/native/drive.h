/* A round of one endpoint over one socket, without Python between its packets. Mirrored in hosts/round_driver.py. */
#ifndef AGGLAB_DRIVE_H
#define AGGLAB_DRIVE_H

#include <stdint.h>

#include "coalescing.h"
#include "endpoint.h"
#include "io.h"

enum drive_step { POLLING, SENDING, RECEIVING };

struct drive {
	struct endpoint endpoint;
	struct io *io;
	struct coalescing *coalescing;
	uint32_t step; /* where an error occurred: an enum drive_step */
};

/* Sends, waits and takes datagrams until the round is done, until a wait brings nothing (a signal may have ended it),
 * or, after datagrams came, until return_ns. No wait is longer than until wait_end_ns. Returns 0 or a negative errno. */
int drive_round(struct drive *d, int64_t wait_end_ns, int64_t return_ns);

#endif
