/* One port of the packet loop: a receive ring and a send queue on an interface, or a socket pair (CPU port). */
#ifndef P4NATIVE_PORT_H
#define P4NATIVE_PORT_H

#include <net/if.h>
#include <stdbool.h>
#include <sys/socket.h>

#include "drop.h"
#include "loop.h"
#include "pcap.h"
#include "slots.h"
#include "tx_ring.h"

/* Frames on a wire are shorter; an unsegmented (GSO) frame can be this long, plus Ethernet and a VLAN tag. */
#define FRAME_MAX (65535 + 18)
#define MACS_BYTES 12
#define VLAN_TAG_BYTES 4
#define TX_BATCH 256
#define TX_ARENA_BYTES (512u << 10)

/* A queue for frames that do not fit the ring or may be joined in buffers: the frames in order, and the messages made
 * of them. */
struct tx_queue {
	uint8_t *arena;
	uint32_t used;
	uint32_t count;
	struct iovec iov[TX_BATCH];
	struct buffers *buffers;
};

struct port {
	uint16_t number;
	char interface[IF_NAMESIZE];
	int rx_fd, tx_fd;
	struct slots ring; /* the CPU port has none */
	uint32_t next;
	uint8_t *oversize; /* room for one frame that does not fit a slot */
	struct tx_ring tx_ring;
	struct tx_queue tx; /* empty whenever frames wait in tx_ring */
	uint8_t *in_ring;   /* the frame reserved last, if it is there */
	bool gathers;	    /* whether its link carries several packets as one buffer */
	struct pcap *pcap_in, *pcap_out;
	struct drop *drops[2]; /* losses of received frames, and of frames to send; NULL: none */
	uint64_t pcap_errors;
	struct loop_port_stats stats;
};

/* A received frame; data may be written to, VLAN tag in place, checksum not yet completed. */
struct frame {
	uint8_t *data;
	uint32_t len;
	uint64_t time_ns; /* CLOCK_REALTIME at arrival */
	/* What the sender left to its hardware (struct virtio_net_hdr), 0 if nothing. */
	uint16_t csum_start, csum_offset, gso_size;
	uint8_t flags, gso_type;
};

/* Returns the interface's present MTU, or a negative errno. */
int port_mtu(const struct port *port);

/* For sockets that only send or receive one interface's frames; 0 or a negative errno. */
int port_set_option(int fd, int level, int option, int value);
int port_bind_sender(int fd, int ifindex);

enum rx_result { RX_EMPTY, RX_FRAME, RX_SKIPPED };

int port_open_interface(struct port *port, uint32_t ring_frames, const char **step);
int port_open_cpu(struct port *port);
/* Moves the port to the interface that has its name now. While frames are forwarded, and without privileges. */
int port_attach(const struct port *port, const char **step);
void port_close(struct port *port);

/* Takes the next frame. After RX_FRAME or RX_SKIPPED port_release gives the slot back. */
enum rx_result port_receive(struct port *port, struct frame *frame);
/* Counts a packet of a received frame. Returns false if it is dropped on purpose; then nothing else may see it. */
bool port_admit(struct port *port, uint32_t len);
void port_release(struct port *port);

/* Returns room for a frame of at most max_len bytes; NULL if it can never fit. Sends what is queued when full. in_run:
 * similar frames are likely to follow, and may leave with this one in one buffer. */
uint8_t *port_reserve(struct port *port, uint32_t max_len, bool in_run);
void port_commit(struct port *port, uint32_t len);
void port_flush(struct port *port);

/* Adds the kernel's count of frames that found the ring full. Not thread-safe. */
void port_collect_ring_drops(struct port *port);

#endif
