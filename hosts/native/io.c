/* Many datagrams per system call on one non-blocking UDP socket: what hosts/driver.py calls. The socket is connected,
 * or it has a list of peers: then each datagram goes to one of them, and one from anybody else is thrown away. */
#define _GNU_SOURCE
#include <errno.h>
#include <netinet/in.h>
#include <netinet/udp.h>
#include <poll.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>

#include "io.h"
#include "outbox.h"
#include "staging.h"

/* linux/udp.h; older headers lack the name */
#ifndef UDP_SEGMENT
#define UDP_SEGMENT 103
#endif

#define SEND_BATCH 256
#define RUN_BYTES_MAX 65507 /* the longest payload of an IPv4 datagram */
#define FULL_WAIT_MS 20
#define ERRORS_MAX 16 /* errors read in one call */
#define NONE UINT32_MAX

union segment_size {
	char space[CMSG_SPACE(sizeof(uint16_t))];
	struct cmsghdr alignment;
};

struct io {
	int fd;
	uint32_t capacity;
	uint32_t *lengths;
	uint32_t *senders;
	uint8_t *row_memory;
	uint64_t row_bytes;
	struct sockaddr_in *peers; /* NULL: the socket is connected */
	uint32_t peer_count;
	uint64_t unknown_senders;
	uint32_t arrived; /* datagrams in rows, for io_next_rows */
	struct sockaddr_in *sources;
	struct mmsghdr *receive;
	struct iovec *rows;
	int last_error; /* errno of the last error that came from the network */
	uint64_t network_errors;
	uint64_t unsent;
	uint32_t segments;	 /* most datagrams of one buffer; 1: each is sent by itself */
	struct staging *staging; /* NULL: each datagram is received by itself */
	struct mmsghdr send[SEND_BATCH];
	uint32_t datagrams[SEND_BATCH]; /* how many datagrams each message has */
	union segment_size sizes[SEND_BATCH];
	struct iovec frames[SEND_BATCH];
};

void io_free(struct io *io)
{
	if (!io)
		return;
	staging_free(io->staging);
	free(io->sources);
	free(io->peers);
	free(io->receive);
	free(io->rows);
	free(io);
}

/* Makes room for the addresses of senders. Returns 0 without memory. */
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

/* Datagrams are received into rows, row_bytes apart; their lengths go to `lengths`, and the indices of their senders to
 * `senders`. addresses, ports: those of peer_count peers, in network byte order; peer_count is 0 if the socket is
 * connected. segments: how many datagrams may cross the kernel as one buffer; 1: each crosses alone. Returns NULL
 * without memory. */
struct io *io_new(int fd, uint8_t *rows, uint64_t row_bytes, uint32_t *lengths, uint32_t *senders, uint32_t capacity,
		  const uint32_t *addresses, const uint16_t *ports, uint32_t peer_count, uint32_t segments)
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
	io->segments = segments;
	if (segments > 1)
		io->staging = staging_new(fd);
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

/* Names the senders of count datagrams and removes those of unknown senders. Returns how many are left. */
static int attribute(struct io *io, int count)
{
	int kept = 0;

	for (int i = 0; i < count; i++) {
		uint32_t peer = io->peers ? peer_of(io, &io->sources[i]) : 0;

		if (peer == NONE) {
			io->unknown_senders++;
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

/* Copies a datagram into a row. One that is too long stays recognisable by its length. */
static void put_into_row(struct io *io, uint32_t row, const uint8_t *data, uint32_t length)
{
	io->lengths[row] = length < io->row_bytes ? length : (uint32_t)io->row_bytes;
	memcpy(io->row_memory + row * io->row_bytes, data, io->lengths[row]);
}

/* Takes the next datagrams of a known sender, `most` at the most. Returns 0 if there are none. */
static int take_run(struct io *io, uint32_t most, struct run *run, uint32_t *peer)
{
	while (staging_take(io->staging, most, run)) {
		*peer = io->peers ? peer_of(io, run->source) : 0;
		if (*peer != NONE)
			return 1;
		io->unknown_senders += run->count;
	}
	return 0;
}

/* Moves datagrams into rows from number `row` on, while there is room. Returns the first row that is free. */
static uint32_t take_datagrams(struct io *io, uint32_t row)
{
	struct run run;
	uint32_t peer;

	while (row < io->capacity && take_run(io, 1, &run, &peer)) {
		put_into_row(io, row, run.data, run.last);
		io->senders[row++] = peer;
	}
	return row;
}

/* Receives into the empty staging. Returns how many buffers, or a negative errno. */
static int fill_staging(struct io *io)
{
	for (int errors = 0; errors < ERRORS_MAX; errors++) {
		int count = staging_receive(io->staging);

		if (count >= 0)
			return count;
		if (count == -EAGAIN || count == -EINTR)
			return 0;
		if (is_ours(-count))
			return count;
		note_error(io, -count);
	}
	return 0;
}

static int receive_buffers(struct io *io)
{
	uint32_t rows = take_datagrams(io, 0);
	int count = staging_capacity();

	while (rows < io->capacity && count == staging_capacity()) {
		count = fill_staging(io);
		if (count < 0)
			return count;
		rows = take_datagrams(io, rows);
	}
	return (int)rows;
}

/* A pending error is reported instead of datagrams; reading it clears it. */
static int receive_single(struct io *io)
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

static int is_waiting(const struct io *io)
{
	return io->staging && !staging_empty(io->staging);
}

/* Receives into rows. Returns how many datagrams, or a negative errno. */
static int receive_now(struct io *io)
{
	return io->staging ? receive_buffers(io) : receive_single(io);
}

/* Receives datagrams for io_next_rows. Returns whether there are any, or a negative errno. */
static int receive_for_rows(struct io *io)
{
	int count;

	if (is_waiting(io))
		return 1;
	count = io->staging ? fill_staging(io) : receive_single(io);
	io->arrived = count > 0 && !io->staging ? (uint32_t)count : 0;
	return count < 0 ? count : count > 0;
}

static struct timespec to_timespec(int64_t ns)
{
	return (struct timespec){ .tv_sec = ns / 1000000000, .tv_nsec = ns % 1000000000 };
}

/* Lets results gather for gather_ns, then takes what is there; with nothing there, waits up to wait_ns more for the
 * first. Returns what `receive` returns. A signal ends the wait: 0. */
static int wait_and(struct io *io, int (*receive)(struct io *), int64_t gather_ns, int64_t wait_ns)
{
	struct pollfd readable = { .fd = io->fd, .events = POLLIN };
	struct timespec gather = to_timespec(gather_ns), wait = to_timespec(wait_ns);
	int count;

	if (gather_ns > 0 && !is_waiting(io) && clock_nanosleep(CLOCK_MONOTONIC, 0, &gather, NULL) == EINTR)
		return 0;
	count = receive(io);
	if (count || wait_ns <= 0)
		return count;
	if (ppoll(&readable, 1, &wait, NULL) <= 0)
		return 0;
	return receive(io);
}

/* Lets results gather for gather_ns, then takes what is there into rows; with nothing there, waits up to wait_ns more
 * for the first. Returns how many datagrams, or a negative errno. A signal ends the wait: 0. */
int io_receive(struct io *io, int64_t gather_ns, int64_t wait_ns)
{
	return wait_and(io, receive_now, gather_ns, wait_ns);
}

int io_receive_rows(struct io *io, int64_t gather_ns, int64_t wait_ns)
{
	return wait_and(io, receive_for_rows, gather_ns, wait_ns);
}

/* Endpoints read numbers of four bytes in place. */
static int is_aligned(const struct run *run)
{
	return run->size % sizeof(uint32_t) == 0 && (uintptr_t)run->data % sizeof(uint32_t) == 0;
}

static void give_run(struct io *io, const struct run *run, uint32_t peer, struct rows *rows)
{
	int in_place = is_aligned(run);

	for (uint32_t i = 0; i < run->count; i++) {
		io->lengths[i] = i + 1 < run->count ? run->size : run->last;
		io->senders[i] = peer;
		if (!in_place)
			put_into_row(io, i, run->data + (uint64_t)i * run->size, io->lengths[i]);
	}
	*rows = (struct rows){
		.first = in_place ? run->data : io->row_memory,
		.row_bytes = in_place ? run->size : io->row_bytes,
		.lengths = io->lengths,
		.peers = io->senders,
		.count = run->count,
	};
}

int io_next_rows(struct io *io, struct rows *rows)
{
	struct run run;
	uint32_t peer;

	if (io->staging) {
		if (!take_run(io, io->capacity, &run, &peer))
			return 0;
		give_run(io, &run, peer, rows);
		return 1;
	}
	*rows = (struct rows){ io->row_memory, io->row_bytes, io->lengths, io->senders, io->arrived };
	io->arrived = 0;
	return rows->count > 0;
}

static void count_unsent(struct io *io, uint32_t first, uint32_t end)
{
	for (uint32_t i = first; i < end; i++)
		io->unsent += io->datagrams[i];
}

/* The kernel reports an error about an earlier datagram once, instead of sending this one; so this one is tried again,
 * and an error about itself is reported again. If the path refuses a buffer of several datagrams, no further one is
 * tried. */
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
			count_unsent(io, done, count);
			return 0;
		} else if (is_ours(errno) && !(errno == EINVAL && io->datagrams[done] > 1)) {
			return -errno;
		} else {
			note_error(io, errno);
			if (failed != done) {
				failed = done;
				continue;
			}
			if (io->datagrams[done] > 1)
				io->segments = 1;
			count_unsent(io, done, done + 1);
			done++;
		}
	}
	return 0;
}

/* How many of the first datagrams can go as one buffer: all go to one peer and, but for the last, have equal lengths. */
static uint32_t run_of(const struct io *io, const struct outbox *outbox, const uint32_t *queue,
		       const struct iovec *frames, uint32_t count)
{
	size_t total = frames->iov_len;
	uint32_t run = 1;

	while (run < count && run < io->segments && frames[run - 1].iov_len == frames->iov_len &&
	       frames[run].iov_len <= frames->iov_len && frames[run].iov_len &&
	       (!io->peers || outbox_peer(outbox, queue[run]) == outbox_peer(outbox, *queue))) {
		total += frames[run].iov_len;
		if (total > RUN_BYTES_MAX)
			break;
		run++;
	}
	return run;
}

static void say_segment_size(struct msghdr *message, union segment_size *place, size_t bytes)
{
	uint16_t size = (uint16_t)bytes;
	struct cmsghdr *said;

	message->msg_control = place;
	message->msg_controllen = sizeof(*place);
	said = CMSG_FIRSTHDR(message);
	said->cmsg_level = IPPROTO_UDP;
	said->cmsg_type = UDP_SEGMENT;
	said->cmsg_len = CMSG_LEN(sizeof(size));
	memcpy(CMSG_DATA(said), &size, sizeof(size));
}

/* Makes messages of count rows, SEND_BATCH at most. Returns how many. */
static uint32_t make_messages(struct io *io, const struct outbox *outbox, const uint32_t *queue, uint32_t count)
{
	uint32_t messages = 0, run;

	for (uint32_t i = 0; i < count; i++) {
		io->frames[i].iov_base = (void *)(outbox->frames + queue[i] * outbox->frame_stride);
		io->frames[i].iov_len = outbox_length(outbox, queue[i]);
	}
	for (uint32_t i = 0; i < count; i += run) {
		struct msghdr *message = &io->send[messages].msg_hdr;

		run = run_of(io, outbox, queue + i, io->frames + i, count - i);
		*message = (struct msghdr){ .msg_iov = &io->frames[i], .msg_iovlen = run };
		if (io->peers) {
			message->msg_name = &io->peers[outbox_peer(outbox, queue[i])];
			message->msg_namelen = sizeof(struct sockaddr_in);
		}
		if (run > 1)
			say_segment_size(message, &io->sizes[messages], io->frames[i].iov_len);
		io->datagrams[messages++] = run;
	}
	return messages;
}

int io_send(struct io *io, const struct outbox *outbox, const uint32_t *queue, uint32_t count)
{
	while (count) {
		uint32_t batch = count < SEND_BATCH ? count : SEND_BATCH;
		int result = send_some(io, make_messages(io, outbox, queue, batch));

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

uint64_t io_unknown_senders(const struct io *io)
{
	return io->unknown_senders;
}
