/* The packet loop: what Python (p4native/switch/io/__init__.py) calls.
 *
 * One loop is one switch: ports in, one compiled program (p4native/switch/runtime/pipeline.h), ports out, all in one
 * thread. Functions return 0 or a negative errno. Everything here is called from control threads; the
 * structures of statistics are mirrored in p4native/switch/io/native.py, field by field.
 */
#ifndef P4NATIVE_LOOP_H
#define P4NATIVE_LOOP_H

#include <stddef.h>
#include <stdint.h>

#include "../runtime/pipeline.h"

struct loop;

/* The functions of one compiled program and its instance. */
struct loop_program {
	struct pipeline *instance;
	void (*lock)(struct pipeline *);
	void (*unlock)(struct pipeline *);
	void (*process)(struct pipeline *, uint16_t port, const uint8_t *frame, uint32_t len, uint64_t now_us,
			const struct pl_sink *sink);
	void (*know_sum)(struct pipeline *, const uint8_t *bytes, uint32_t len, uint32_t sum);
};

struct loop_options {
	uint32_t ring_frames; /* slots of each interface's receive ring; 0: 2048, or what fits 8 MiB */
	uint32_t batch;	      /* packets taken from one port before the next port's turn */
	uint32_t coalesce_us; /* how long to let frames gather after a small batch; 0: not at all */
};

struct loop_port_stats {
	uint64_t rx_packets, rx_bytes;
	uint64_t tx_packets, tx_bytes;
	uint64_t ring_drops;   /* the ring was full: the kernel dropped the frame before the switch saw it */
	uint64_t rx_truncated; /* frames longer than the largest one that the loop takes: dropped */
	uint64_t rx_gso;       /* frames that arrived unsegmented (sender's offload) and were cut up here into packets */
	uint64_t rx_gso_drops; /* unsegmented frames of a kind that cannot be cut: dropped */
	uint64_t rx_checksums; /* checksums completed that the sender had left to its hardware */
	uint64_t tx_drops;     /* frames that the interface's queue refused */
	uint64_t tx_oversize;  /* frames longer than the interface's MTU allows */
	uint64_t tx_errors;    /* frames lost because the interface was down or gone */
};

struct loop_stats {
	uint64_t cpu_ns;	/* processor time of the data-plane thread */
	uint64_t batches;	/* how often pl_lock was taken */
	uint64_t sleeps;	/* waits in poll */
	uint64_t no_port_drops; /* frames the program sent to a port that does not exist */
	uint64_t no_program;	/* frames that arrived while no program was loaded */
	uint64_t pcap_errors;	/* frames that could not be written to a capture file */
};

/* Seeded loss at one side of a port: frames that came from the interface, or are to go to it. */
#define LOOP_DROP_NUMBERS 65536

struct loop_drop_stats {
	uint64_t seen, dropped, dropped_bytes;
};

int loop_new(const struct loop_options *options, struct loop **out);
/* Before loop_start. On error *step names what failed ("open", "ring", ...). */
int loop_add_interface(struct loop *loop, uint16_t port, const char *interface, const char **step);
/* Before loop_start. Returns the controller's end of a SOCK_SEQPACKET pair, one frame a message, or -errno. */
int loop_add_cpu_port(struct loop *loop, uint16_t port);
/* Before loop_start. Captures what enters and leaves the port's interface. */
int loop_add_pcap(struct loop *loop, uint16_t port, const char *in_path, const char *out_path);
/* Before loop_start. Drops every frame whose random number is below the threshold, or every frame (always). */
int loop_add_drop(struct loop *loop, uint16_t port, int outgoing, uint64_t key, uint64_t threshold, int always);
/* Moves a port to the interface that has its name now: the one that it had was deleted. At any time. */
int loop_attach(struct loop *loop, uint16_t port, const char **step);
int loop_start(struct loop *loop);
/* Returns once no frame is in the previous program any more. NULL: drop everything. */
void loop_set_program(struct loop *loop, const struct loop_program *program);
/* Ends the thread; statistics stay readable until loop_free, which completes the captures. */
void loop_stop(struct loop *loop);
void loop_free(struct loop *loop);

void loop_read_stats(struct loop *loop, struct loop_stats *out);
int loop_read_port_stats(struct loop *loop, uint16_t port, struct loop_port_stats *out);
/* numbers: of the first dropped frames, at most `room`. */
int loop_read_drop_stats(struct loop *loop, uint16_t port, int outgoing, struct loop_drop_stats *out,
			 uint64_t *numbers, uint32_t room);

#endif
