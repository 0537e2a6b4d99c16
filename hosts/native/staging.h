/* Received buffers, each of one datagram or several of one sender (UDP_GRO), until their datagrams have been taken. */
#ifndef AGGLAB_STAGING_H
#define AGGLAB_STAGING_H

#include <netinet/in.h>
#include <stdint.h>

struct staging;

/* Datagrams of one sender that came as one buffer, one behind the other; valid until the next staging_receive. An
 * endpoint may read up to STAGING_SLACK bytes behind a short one. */
struct run {
	const uint8_t *data;
	uint32_t count;
	uint32_t size; /* length of each datagram but the last */
	uint32_t last; /* length of the last */
	const struct sockaddr_in *source;
};

#define STAGING_SLACK 64

/* Prepares to receive from a socket. Returns NULL without memory, or if the kernel has no UDP_GRO. */
struct staging *staging_new(int fd);
void staging_free(struct staging *staging);

/* Receives what the socket has; everything before must have been taken. Returns how many buffers, or a negative errno. */
int staging_receive(struct staging *staging);
/* The most that one staging_receive returns. */
int staging_capacity(void);
/* Gives the next datagrams, in order of arrival, `most` at the most. Returns 0 if there are none. */
int staging_take(struct staging *staging, uint32_t most, struct run *run);
int staging_empty(const struct staging *staging);

#endif
