/* The data plane's thread: rings in, one batch under the program's lock, queues out (see loop.h). */
#include "loop.h"

#include <errno.h>
#include <linux/virtio_net.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#include "offload.h"
#include "port.h"

#define PORT_NUMBERS 512 /* v1model's port is 9 bits wide */
#define NS_PER_S 1000000000ull
/* Where a batch ends at the latest. Bytes queued for sending should still be in the second-level cache when the
 * kernel copies them out; frames, dropped ones too, bound how long control calls wait for the program's lock. */
#define BATCH_BYTES (384u << 10)
#define BATCH_FRAMES 1024

struct loop {
	struct loop_options options;
	struct port *ports[PORT_NUMBERS]; /* in the order in which they were added */
	uint32_t port_count;
	struct port *by_number[PORT_NUMBERS];
	struct pollfd *wait_for; /* the ports' receivers, then wake_fd */
	int wake_fd;
	struct pl_sink sink;
	struct port *receiving;
	uint64_t arrived_ns; /* CLOCK_REALTIME when the current frame arrived */
	bool in_run;	     /* the current frame holds several packets */
	uint64_t now_us, start_ns;
	uint32_t queued_bytes;
	bool dirty_captures;

	pthread_t thread;
	bool running;
	bool stopping; /* atomic */
	clockid_t cpu_clock;
	/* A control thread sets the program `wanted`; between batches the loop makes it `current`. */
	pthread_mutex_t control;
	pthread_cond_t adopted;
	const struct loop_program *wanted; /* atomic */
	const struct loop_program *current;
	struct loop_stats stats;
};

static uint64_t clock_ns(clockid_t clock)
{
	struct timespec now;

	clock_gettime(clock, &now);
	return (uint64_t)now.tv_sec * NS_PER_S + (uint64_t)now.tv_nsec;
}

static struct port *find_port(const struct loop *loop, uint16_t number)
{
	return number < PORT_NUMBERS ? loop->by_number[number] : NULL;
}

static uint8_t *sink_reserve(void *context, uint16_t number, uint32_t max_len)
{
	struct loop *loop = context;
	struct port *port = find_port(loop, number);

	if (!port) {
		loop->stats.no_port_drops++;
		return NULL;
	}
	return port_reserve(port, max_len, loop->in_run);
}

static void sink_commit(void *context, uint16_t number, uint32_t len)
{
	struct loop *loop = context;

	loop->queued_bytes += len;
	port_commit(loop->by_number[number], len);
}

static void process(struct loop *loop, const uint8_t *data, uint32_t len, const struct known_sum *known)
{
	const struct loop_program *program = loop->current;

	if (!program) {
		loop->stats.no_program++;
		return;
	}
	if (known)
		program->know_sum(program->instance, known->bytes, known->len, known->sum);
	program->process(program->instance, loop->receiving->number, data, len, loop->now_us, &loop->sink);
}

static void take_packet(void *context, uint8_t *data, uint32_t len, const struct known_sum *known)
{
	struct loop *loop = context;
	struct port *port = loop->receiving;

	if (!port_admit(port, len))
		return;
	if (port->pcap_in) {
		port->pcap_errors += pcap_write(port->pcap_in, loop->arrived_ns, data, len) != 0;
		loop->dirty_captures = true;
	}
	process(loop, data, len, known);
}

/* Takes a frame that holds several packets. Returns how many. */
static uint32_t take_run(struct loop *loop, struct port *port, struct frame *frame)
{
	int packets;

	loop->in_run = true;
	packets = offload_segment(frame, take_packet, loop);
	loop->in_run = false;
	if (packets < 0)
		port->stats.rx_gso_drops++;
	else
		port->stats.rx_gso++;
	return packets < 0 ? 1 : (uint32_t)packets;
}

static uint32_t take_frame(struct loop *loop, struct port *port, struct frame *frame)
{
	loop->receiving = port;
	loop->arrived_ns = frame->time_ns;
	if (frame->gso_type)
		return take_run(loop, port, frame);
	if (frame->flags & VIRTIO_NET_HDR_F_NEEDS_CSUM && !offload_complete_checksum(frame))
		port->stats.rx_checksums++;
	take_packet(loop, frame->data, frame->len, NULL);
	return 1;
}

/* Takes about options.batch packets of one port, to the end of the last frame. Returns how many. */
static uint32_t drain_port(struct loop *loop, struct port *port)
{
	uint32_t taken = 0;

	while (taken < loop->options.batch) {
		struct frame frame;
		enum rx_result result = port_receive(port, &frame);

		if (result == RX_EMPTY)
			break;
		taken += result == RX_FRAME ? take_frame(loop, port, &frame) : 1;
		port_release(port);
	}
	return taken;
}

/* Serves the ports in turn until all are empty or the batch is large enough. The caller holds the program's lock. */
static uint32_t drain_ports(struct loop *loop)
{
	uint32_t total = 0, round;

	do {
		round = 0;
		for (uint32_t i = 0; i < loop->port_count; i++)
			round += drain_port(loop, loop->ports[i]);
		total += round;
	} while (round && loop->queued_bytes < BATCH_BYTES && total < BATCH_FRAMES);
	return total;
}

static uint32_t run_batch(struct loop *loop)
{
	const struct loop_program *program = loop->current;
	uint32_t taken;

	loop->now_us = (clock_ns(CLOCK_MONOTONIC) - loop->start_ns) / 1000;
	loop->queued_bytes = 0;
	if (program)
		program->lock(program->instance);
	taken = drain_ports(loop);
	if (program)
		program->unlock(program->instance);
	loop->stats.batches++;
	for (uint32_t i = 0; i < loop->port_count; i++)
		port_flush(loop->ports[i]);
	return taken;
}

static void flush_captures(struct loop *loop)
{
	for (uint32_t i = 0; i < loop->port_count; i++) {
		struct port *port = loop->ports[i];

		if (port->pcap_in)
			pcap_flush(port->pcap_in);
		if (port->pcap_out)
			pcap_flush(port->pcap_out);
	}
	loop->dirty_captures = false;
}

/* An interface that goes down leaves an error on its socket, which would end every poll at once. */
static void clear_socket_errors(struct loop *loop)
{
	for (uint32_t i = 0; i < loop->port_count; i++) {
		int error;
		socklen_t length = sizeof(error);

		if (loop->wait_for[i].revents & (POLLERR | POLLNVAL))
			getsockopt(loop->wait_for[i].fd, SOL_SOCKET, SO_ERROR, &error, &length);
	}
}

static void wait_for_frames(struct loop *loop)
{
	struct pollfd *wake = &loop->wait_for[loop->port_count];
	uint64_t value;

	if (loop->dirty_captures)
		flush_captures(loop);
	loop->stats.sleeps++;
	if (poll(loop->wait_for, loop->port_count + 1, -1) < 0)
		return;
	clear_socket_errors(loop);
	if (wake->revents & POLLIN && read(loop->wake_fd, &value, sizeof(value)) < 0)
		wake->revents = 0;
}

/* Waits for more frames after a small batch: a bounded delay is better than a wake-up for every few frames. */
static void let_frames_gather(const struct loop *loop)
{
	struct timespec pause = {.tv_nsec = (long)loop->options.coalesce_us * 1000};

	nanosleep(&pause, NULL);
}

static void adopt_program(struct loop *loop)
{
	pthread_mutex_lock(&loop->control);
	loop->current = __atomic_load_n(&loop->wanted, __ATOMIC_ACQUIRE);
	pthread_cond_broadcast(&loop->adopted);
	pthread_mutex_unlock(&loop->control);
}

static void *run(void *context)
{
	struct loop *loop = context;

	/* The default slack of 50 us would double every short pause. */
	prctl(PR_SET_TIMERSLACK, 1000);
	prctl(PR_SET_NAME, "data-plane");
	while (!__atomic_load_n(&loop->stopping, __ATOMIC_ACQUIRE)) {
		uint32_t taken;

		if (__atomic_load_n(&loop->wanted, __ATOMIC_ACQUIRE) != loop->current)
			adopt_program(loop);
		taken = run_batch(loop);
		if (!taken)
			wait_for_frames(loop);
		else if (loop->options.coalesce_us && taken < loop->options.batch)
			let_frames_gather(loop);
	}
	loop->stats.cpu_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID);
	return NULL;
}

int loop_new(const struct loop_options *options, struct loop **out)
{
	struct loop *loop = calloc(1, sizeof(*loop));

	if (!loop)
		return -ENOMEM;
	loop->options = *options;
	loop->sink = (struct pl_sink){.context = loop, .reserve = sink_reserve, .commit = sink_commit};
	loop->start_ns = clock_ns(CLOCK_MONOTONIC);
	pthread_mutex_init(&loop->control, NULL);
	pthread_cond_init(&loop->adopted, NULL);
	loop->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	*out = loop;
	return loop->wake_fd >= 0 ? 0 : -ENOMEM;
}

static struct port *new_port(uint16_t number, int *error)
{
	struct port *port = calloc(1, sizeof(*port));

	*error = port ? 0 : -ENOMEM;
	if (port) {
		port->number = number;
		port->rx_fd = -1;
		port->tx_fd = -1;
		port->tx_ring.fd = -1;
	}
	return port;
}

static void drop_port(struct port *port)
{
	port_close(port);
	free(port);
}

static void keep_port(struct loop *loop, struct port *port)
{
	loop->ports[loop->port_count++] = port;
	loop->by_number[port->number] = port;
}

int loop_add_interface(struct loop *loop, uint16_t number, const char *interface, const char **step)
{
	struct port *port;
	int error;

	*step = "port number";
	if (number >= PORT_NUMBERS || loop->by_number[number])
		return -EEXIST;
	if (strlen(interface) >= IF_NAMESIZE)
		return -ENODEV;
	port = new_port(number, &error);
	if (!port)
		return error;
	strcpy(port->interface, interface);
	error = port_open_interface(port, loop->options.ring_frames, step);
	if (error)
		drop_port(port);
	else
		keep_port(loop, port);
	return error;
}

int loop_attach(struct loop *loop, uint16_t number, const char **step)
{
	const struct port *port = find_port(loop, number);

	*step = "port number";
	return port ? port_attach(port, step) : -ENOENT;
}

int loop_add_cpu_port(struct loop *loop, uint16_t number)
{
	struct port *port;
	int fd;

	if (number >= PORT_NUMBERS || loop->by_number[number])
		return -EEXIST;
	port = new_port(number, &fd);
	if (!port)
		return fd;
	fd = port_open_cpu(port);
	if (fd < 0)
		drop_port(port);
	else
		keep_port(loop, port);
	return fd;
}

int loop_add_pcap(struct loop *loop, uint16_t number, const char *in_path, const char *out_path)
{
	struct port *port = find_port(loop, number);
	int error;

	if (!port)
		return -ENOENT;
	error = pcap_open(in_path, &port->pcap_in);
	return error ? error : pcap_open(out_path, &port->pcap_out);
}

int loop_add_drop(struct loop *loop, uint16_t number, int outgoing, uint64_t key, uint64_t threshold, int always)
{
	struct port *port = find_port(loop, number);

	if (!port)
		return -ENOENT;
	if (port->drops[!!outgoing])
		return -EEXIST;
	port->drops[!!outgoing] = drop_new(key, threshold, always);
	return port->drops[!!outgoing] ? 0 : -ENOMEM;
}

int loop_start(struct loop *loop)
{
	int error;

	loop->wait_for = calloc(loop->port_count + 1, sizeof(*loop->wait_for));
	if (!loop->wait_for)
		return -ENOMEM;
	for (uint32_t i = 0; i < loop->port_count; i++)
		loop->wait_for[i] = (struct pollfd){.fd = loop->ports[i]->rx_fd, .events = POLLIN};
	loop->wait_for[loop->port_count] = (struct pollfd){.fd = loop->wake_fd, .events = POLLIN};
	loop->start_ns = clock_ns(CLOCK_MONOTONIC);
	error = pthread_create(&loop->thread, NULL, run, loop);
	if (error)
		return -error;
	pthread_getcpuclockid(loop->thread, &loop->cpu_clock);
	loop->running = true;
	return 0;
}

static void wake(struct loop *loop)
{
	uint64_t one = 1;

	if (write(loop->wake_fd, &one, sizeof(one)) < 0)
		return; /* the counter is full, so the loop is awake */
}

void loop_set_program(struct loop *loop, const struct loop_program *program)
{
	pthread_mutex_lock(&loop->control);
	__atomic_store_n(&loop->wanted, program, __ATOMIC_RELEASE);
	wake(loop);
	while (loop->running && loop->current != program)
		pthread_cond_wait(&loop->adopted, &loop->control);
	if (!loop->running)
		loop->current = program;
	pthread_mutex_unlock(&loop->control);
}

void loop_stop(struct loop *loop)
{
	if (!loop->running)
		return;
	__atomic_store_n(&loop->stopping, true, __ATOMIC_RELEASE);
	wake(loop);
	pthread_join(loop->thread, NULL);
	/* Releases the threads that wait for the loop to adopt a program. */
	pthread_mutex_lock(&loop->control);
	loop->running = false;
	pthread_cond_broadcast(&loop->adopted);
	pthread_mutex_unlock(&loop->control);
}

void loop_free(struct loop *loop)
{
	loop_stop(loop);
	for (uint32_t i = 0; i < loop->port_count; i++)
		drop_port(loop->ports[i]);
	if (loop->wake_fd >= 0)
		close(loop->wake_fd);
	pthread_cond_destroy(&loop->adopted);
	pthread_mutex_destroy(&loop->control);
	free(loop->wait_for);
	free(loop);
}

void loop_read_stats(struct loop *loop, struct loop_stats *out)
{
	uint64_t cpu_ns = loop->running ? clock_ns(loop->cpu_clock) : loop->stats.cpu_ns;

	*out = loop->stats;
	out->cpu_ns = cpu_ns;
	for (uint32_t i = 0; i < loop->port_count; i++)
		out->pcap_errors += loop->ports[i]->pcap_errors;
}

int loop_read_port_stats(struct loop *loop, uint16_t number, struct loop_port_stats *out)
{
	struct port *port = find_port(loop, number);

	if (!port)
		return -ENOENT;
	pthread_mutex_lock(&loop->control);
	port_collect_ring_drops(port);
	*out = port->stats;
	pthread_mutex_unlock(&loop->control);
	return 0;
}

int loop_read_drop_stats(struct loop *loop, uint16_t number, int outgoing, struct loop_drop_stats *out,
			 uint64_t *numbers, uint32_t room)
{
	struct port *port = find_port(loop, number);

	if (!port || !port->drops[!!outgoing])
		return -ENOENT;
	drop_read(port->drops[!!outgoing], out, numbers, room);
	return 0;
}
