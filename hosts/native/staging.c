/* Buffers of several datagrams (see staging.h). */
#define _GNU_SOURCE
#include "staging.h"

#include <errno.h>
#include <netinet/udp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

/* linux/udp.h; older headers lack the name */
#ifndef UDP_GRO
#define UDP_GRO 104
#endif

#define BUFFERS 32
#define BUFFER_BYTES 65536
#define BUFFER_STRIDE (BUFFER_BYTES + STAGING_SLACK)

union segment_size {
	char space[CMSG_SPACE(sizeof(int))];
	struct cmsghdr alignment;
};

struct staging {
	int fd;
	uint32_t count, next; /* buffers received, the one in work */
	uint32_t offset;      /* where its next datagram begins */
	uint8_t *memory;
	struct mmsghdr messages[BUFFERS];
	struct iovec buffers[BUFFERS];
	struct sockaddr_in sources[BUFFERS];
	union segment_size sizes[BUFFERS];
};

struct staging *staging_new(int fd)
{
	struct staging *staging = calloc(1, sizeof(*staging));
	int on = 1;

	if (!staging)
		return NULL;
	staging->fd = fd;
	staging->memory = malloc((size_t)BUFFERS * BUFFER_STRIDE);
	if (!staging->memory || setsockopt(fd, IPPROTO_UDP, UDP_GRO, &on, sizeof(on))) {
		staging_free(staging);
		return NULL;
	}
	for (uint32_t i = 0; i < BUFFERS; i++)
		staging->buffers[i] = (struct iovec){ staging->memory + (size_t)i * BUFFER_STRIDE, BUFFER_BYTES };
	return staging;
}

void staging_free(struct staging *staging)
{
	if (!staging)
		return;
	free(staging->memory);
	free(staging);
}

int staging_capacity(void)
{
	return BUFFERS;
}

int staging_receive(struct staging *staging)
{
	int count;

	for (uint32_t i = 0; i < BUFFERS; i++)
		staging->messages[i].msg_hdr = (struct msghdr){
			.msg_name = &staging->sources[i],
			.msg_namelen = sizeof(staging->sources[i]),
			.msg_iov = &staging->buffers[i],
			.msg_iovlen = 1,
			.msg_control = &staging->sizes[i],
			.msg_controllen = sizeof(staging->sizes[i]),
		};
	count = recvmmsg(staging->fd, staging->messages, BUFFERS, MSG_DONTWAIT, NULL);
	staging->next = staging->offset = 0;
	staging->count = count > 0 ? (uint32_t)count : 0;
	return count < 0 ? -errno : count;
}

/* The length of each datagram in the buffer; the last may be shorter. */
static uint32_t segment_bytes(struct mmsghdr *message)
{
	struct cmsghdr *said = CMSG_FIRSTHDR(&message->msg_hdr);
	int size = 0;

	if (said && said->cmsg_level == IPPROTO_UDP && said->cmsg_type == UDP_GRO)
		memcpy(&size, CMSG_DATA(said), sizeof(size));
	return size > 0 ? (uint32_t)size : message->msg_len;
}

int staging_empty(const struct staging *staging)
{
	return staging->next == staging->count;
}

int staging_take(struct staging *staging, uint32_t most, struct run *run)
{
	struct mmsghdr *message = &staging->messages[staging->next];
	uint32_t left, size, count, bytes;

	if (staging_empty(staging))
		return 0;
	left = message->msg_len - staging->offset;
	size = segment_bytes(message);
	count = left > size ? (left + size - 1) / size : 1;
	count = count < most ? count : most;
	bytes = (uint64_t)count * size < left ? count * size : left;
	*run = (struct run){
		.data = (uint8_t *)staging->buffers[staging->next].iov_base + staging->offset,
		.count = count,
		.size = size,
		.last = bytes - (count - 1) * size,
		.source = &staging->sources[staging->next],
	};
	staging->offset += bytes;
	if (staging->offset == message->msg_len) {
		staging->next++;
		staging->offset = 0;
	}
	return 1;
}
