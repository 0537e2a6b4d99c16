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

/* For a socket; NULL: no memory, or a kernel without UDP_GRO. */
struct staging *staging_new(int fd);
void staging_free(struct staging *staging);

/* Takes what the socket has, when all that came before has been taken. Returns how many buffers, or a negative errno. */
int staging_receive(struct staging *staging);
/* The most that one staging_receive returns. */
int staging_capacity(void);
/* The next datagram, in order; 0: there is none. */
int staging_take(struct staging *staging, struct datagram *datagram);
int staging_empty(const struct staging *staging);

#endif
