/* Received buffers, each of one datagram or several of one sender (UDP_GRO), until their datagrams have been taken. */
#ifndef AGGLAB_STAGING_H
#define AGGLAB_STAGING_H

#include <netinet/in.h>
#include <stdint.h>

struct staging;

/* A datagram that came; valid until the next staging_receive. */
struct datagram {
	const uint8_t *data;
	uint32_t length;
	const struct sockaddr_in *source;
};

/* Prepares to receive from a socket. Returns NULL without memory, or if the kernel has no UDP_GRO. */
struct staging *staging_new(int fd);
void staging_free(struct staging *staging);

/* Receives what the socket has; everything before must have been taken. Returns how many buffers, or a negative errno. */
int staging_receive(struct staging *staging);
/* The most that one staging_receive returns. */
int staging_capacity(void);
/* Gives the next datagram, in order of arrival. Returns 0 if there is none. */
int staging_take(struct staging *staging, struct datagram *datagram);
int staging_empty(const struct staging *staging);

#endif
