/* Many datagrams per system call on one non-blocking UDP socket: what hosts/driver.py calls. The socket is connected, or
 * it has a list of peers: then each datagram goes to one of them, and one from anybody else is thrown away. */
#define _GNU_SOURCE
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>

#include "io.h"

#define SEND_BATCH 256
#define FULL_WAIT_MS 20
#define ERRORS_MAX 16 /* read in one call */
#define NONE UINT32_MAX

struct io {
	int fd;
	uint32_t capacity;
	uint32_t *lengths;
	uint32_t *senders;
	uint8_t *row_memory;
	uint64_t row_bytes;
	struct sockaddr_in *peers; /* NULL: the socket is connected */
	uint32_t peer_count;
	uint64_t strangers;
	struct sockaddr_in *sources;
	struct mmsghdr *receive;
	struct iovec *rows;
	int last_error; /* errno of the last error that came from the network */
	uint64_t network_errors;
	uint64_t unsent;
	struct mmsghdr send[SEND_BATCH];
	struct iovec frames[SEND_BATCH];
};

void io_free(struct io *io)
{
	if (!io)
		return;
	free(io->sources);
	free(io->peers);
	free(io->receive);
	free(io->rows);
	free(io);
}

/* Room for the addresses of senders. Returns 0 without memory. */
static int set_peers(struct io *io, const uint32_t *addresses, const uint16_t *ports, uint32_t count)
{
	if (!count)
		return 1;
	io->peer_count = count;
	io->peers = calloc(count, sizeof(*io->peers));
	io->sources = calloc(io->capacity, sizeof(*io->sources));
	if (!io->peers || !io->sources)
		return 0;
	for (uint32_t i = 0; i < count; i++) {
		io->peers[i].sin_family = AF_INET;
		io->peers[i].sin_addr.s_addr = addresses[i];
		io->peers[i].sin_port = ports[i];
	}
	for (uint32_t i = 0; i < io->capacity; i++)
		io->receive[i].msg_hdr.msg_name = &io->sources[i];
	return 1;
}

/* Datagrams are received into rows, row_bytes apart; lengths takes their lengths, senders the indices of who sent them.
 * addresses, ports: of peer_count peers, in the order of the network; none if the socket is connected. NULL: no memory. */
struct io *io_new(int fd, uint8_t *rows, uint64_t row_bytes, uint32_t *lengths, uint32_t *senders, uint32_t capacity,
		  const uint32_t *addresses, const uint16_t *ports, uint32_t peer_count)
{
	struct io *io = calloc(1, sizeof(*io));

	if (!io)
		return NULL;
	io->fd = fd;
	io->capacity = capacity;
	io->lengths = lengths;
	io->senders = senders;
	io->row_memory = rows;
	io->row_bytes = row_bytes;
	io->receive = calloc(capacity, sizeof(*io->receive));
	io->rows = calloc(capacity, sizeof(*io->rows));
	if (!io->receive || !io->rows || !set_peers(io, addresses, ports, peer_count)) {
		io_free(io);
		return NULL;
	}
	for (uint32_t i = 0; i < capacity; i++) {
		io->rows[i].iov_base = rows + i * row_bytes;
		io->rows[i].iov_len = row_bytes;
		io->receive[i].msg_hdr.msg_iov = &io->rows[i];
		io->receive[i].msg_hdr.msg_iovlen = 1;
	}
	for (uint32_t i = 0; i < SEND_BATCH; i++) {
		io->send[i].msg_hdr.msg_iov = &io->frames[i];
		io->send[i].msg_hdr.msg_iovlen = 1;
	}
	return io;
}

/* Errors that only a mistake of ours makes. Any other may be what an ICMP message said, forged or not, or an interface
 * that is down: an event, which the worker's timers deal with. */
static int is_ours(int error)
{
	return error == EBADF || error == EFAULT || error == EINVAL || error == ENOTSOCK || error == EDESTADDRREQ ||
	       error == ENOTCONN;
}

static void note_error(struct io *io, int error)
{
	io->last_error = error;
	io->network_errors++;
}

static uint32_t peer_of(const struct io *io, const struct sockaddr_in *source)
{
	for (uint32_t i = 0; i < io->peer_count; i++)
		if (io->peers[i].sin_addr.s_addr == source->sin_addr.s_addr && io->peers[i].sin_port == source->sin_port)
			return i;
	return NONE;
}

/* Names the senders of count datagrams and closes the gaps that strangers' leave. Returns how many are left. */
static int attribute(struct io *io, int count)
{
	int kept = 0;

	for (int i = 0; i < count; i++) {
		uint32_t peer = io->peers ? peer_of(io, &io->sources[i]) : 0;

		if (peer == NONE) {
			io->strangers++;
			continue;
		}
		if (kept != i)
			memcpy(io->row_memory + kept * io->row_bytes, io->row_memory + i * io->row_bytes,
			       io->receive[i].msg_len);
		io->lengths[kept] = io->receive[i].msg_len;
		io->senders[kept++] = peer;
	}
	return kept;
}

static void expect_sources(struct io *io)
{
	for (uint32_t i = 0; io->peers && i < io->capacity; i++)
		io->receive[i].msg_hdr.msg_namelen = sizeof(struct sockaddr_in);
}

/* An error that waits comes up instead of datagrams; reading it clears it. */
static int receive_now(struct io *io)
{
	for (int errors = 0; errors < ERRORS_MAX; errors++) {
		int count;

		expect_sources(io);
		count = recvmmsg(io->fd, io->receive, io->capacity, MSG_DONTWAIT, NULL);
		if (count >= 0)
			return attribute(io, count);
		if (errno == EAGAIN || errno == EINTR)
			return 0;
		if (is_ours(errno))
			return -errno;
		note_error(io, errno);
	}
	return 0;
}

static struct timespec to_timespec(int64_t ns)
{
	return (struct timespec){ .tv_sec = ns / 1000000000, .tv_nsec = ns % 1000000000 };
}

/* Lets results gather for gather_ns, then takes what is there; with nothing there, waits up to wait_ns more
 * for the first. Returns how many datagrams, or a negative errno. A signal ends the wait: 0. */
int io_receive(struct io *io, int64_t gather_ns, int64_t wait_ns)
{
	struct pollfd readable = { .fd = io->fd, .events = POLLIN };
	struct timespec gather = to_timespec(gather_ns), wait = to_timespec(wait_ns);
	int count;

	if (gather_ns > 0 && clock_nanosleep(CLOCK_MONOTONIC, 0, &gather, NULL) == EINTR)
		return 0;
	count = receive_now(io);
	if (count || wait_ns <= 0)
		return count;
	if (ppoll(&readable, 1, &wait, NULL) <= 0)
		return 0;
	return receive_now(io);
}

/* An error about an earlier datagram comes up once, in place of sending this one, which is therefore tried again; an
 * error of its own comes up again. */
static int send_some(struct io *io, uint32_t count)
{
	uint32_t done = 0, failed = NONE;

	while (done < count) {
		struct pollfd writable = { .fd = io->fd, .events = POLLOUT };
		int sent = sendmmsg(io->fd, io->send + done, count - done, MSG_DONTWAIT);

		if (sent > 0) {
			done += (uint32_t)sent;
		} else if (errno == EAGAIN && poll(&writable, 1, FULL_WAIT_MS) > 0) {
			continue;
		} else if (errno == EAGAIN || errno == EINTR) {
			io->unsent += count - done;
			return 0;
		} else if (is_ours(errno)) {
			return -errno;
		} else {
			note_error(io, errno);
			if (failed != done) {
				failed = done;
				continue;
			}
			io->unsent++;
			done++;
		}
	}
	return 0;
}

static uint32_t column(const uint8_t *first, uint64_t stride, uint32_t row)
{
	uint32_t value;

	memcpy(&value, first + row * stride, sizeof(value));
	return value;
}

/* Sends count rows of the outbox. Returns 0 or a negative errno. What a full queue does not take, or the network
 * refuses, is counted as unsent and left to the endpoint's timers. */
int io_send(struct io *io, const struct outbox *outbox, const uint32_t *queue, uint32_t count)
{
	while (count) {
		uint32_t batch = count < SEND_BATCH ? count : SEND_BATCH;
		int result;

		for (uint32_t i = 0; i < batch; i++) {
			io->frames[i].iov_base = (void *)(outbox->frames + queue[i] * outbox->frame_stride);
			io->frames[i].iov_len = column(outbox->lengths, outbox->length_stride, queue[i]);
			if (!io->peers)
				continue;
			io->send[i].msg_hdr.msg_name = &io->peers[column(outbox->peers, outbox->peer_stride, queue[i])];
			io->send[i].msg_hdr.msg_namelen = sizeof(struct sockaddr_in);
		}
		result = send_some(io, batch);
		if (result)
			return result;
		queue += batch;
		count -= batch;
	}
	return 0;
}

int io_last_error(const struct io *io)
{
	return io->last_error;
}

uint64_t io_network_errors(const struct io *io)
{
	return io->network_errors;
}

uint64_t io_unsent(const struct io *io)
{
	return io->unsent;
}

uint64_t io_strangers(const struct io *io)
{
	return io->strangers;
}
