/* Many datagrams per system call on one connected, non-blocking UDP socket: what hosts/driver.py calls. */
#define _GNU_SOURCE
#include <errno.h>
#include <poll.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>

#include "worker.h"

#define SEND_BATCH 256
#define FULL_WAIT_MS 20
#define ERRORS_MAX 16 /* read in one call */
#define NONE UINT32_MAX

struct io {
	int fd;
	uint32_t capacity;
	uint32_t *lengths;
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
	free(io->receive);
	free(io->rows);
	free(io);
}

/* Datagrams are received into rows, row_bytes apart; lengths takes their lengths. NULL: no memory. */
struct io *io_new(int fd, uint8_t *rows, uint64_t row_bytes, uint32_t *lengths, uint32_t capacity)
{
	struct io *io = calloc(1, sizeof(*io));

	if (!io)
		return NULL;
	io->fd = fd;
	io->capacity = capacity;
	io->lengths = lengths;
	io->receive = calloc(capacity, sizeof(*io->receive));
	io->rows = calloc(capacity, sizeof(*io->rows));
	if (!io->receive || !io->rows) {
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

/* An error that waits comes up instead of datagrams; reading it clears it. */
static int receive_now(struct io *io)
{
	for (int errors = 0; errors < ERRORS_MAX; errors++) {
		int count = recvmmsg(io->fd, io->receive, io->capacity, MSG_DONTWAIT, NULL);

		for (int i = 0; i < count; i++)
			io->lengths[i] = io->receive[i].msg_len;
		if (count >= 0)
			return count;
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

/* Sends the datagrams of count slots of w. Returns 0 or a negative errno. What a full queue does not take, or the
 * network refuses, is counted as unsent and left to the worker's timers. */
int io_send(struct io *io, const struct worker *w, const uint32_t *queue, uint32_t count)
{
	while (count) {
		uint32_t batch = count < SEND_BATCH ? count : SEND_BATCH;
		int result;

		for (uint32_t i = 0; i < batch; i++) {
			io->frames[i].iov_base = w->frames + queue[i] * w->frame_stride;
			io->frames[i].iov_len = w->slots[queue[i]].length;
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
