/* A port: opening, closing, and the TPACKET_V2 ring for receiving (see port.h; send.c sends).
 *
 * TPACKET_V2 rather than V3: V3 hands over whole blocks, after a timeout of at least one jiffy (4 ms at
 * HZ=250) when traffic is slow; a window of a few slots would wait that long per round trip.
 */
#include "port.h"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <linux/ethtool.h>
#include <linux/sockios.h>
#include <linux/virtio_net.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "buffers.h"

/* tpacket2_hdr, sockaddr_ll, alignment and the virtio_net_hdr, in front of the frame in its slot */
#define SLOT_OVERHEAD 128
/* How far ahead frames are prefetched, and how much of each; the processor itself follows a long one. */
#define PREFETCH_FRAMES 4
#define PREFETCH_BYTES 2048
/* The number of slots, unless the user sets another. */
#define RING_FRAMES 2048
#define MAX_RING_BYTES (8u << 20)
#define SEND_BUFFER_BYTES (256 << 20)
#define CPU_BUFFER_BYTES (8 << 20)

int port_set_option(int fd, int level, int option, int value)
{
	return setsockopt(fd, level, option, &value, sizeof(value)) ? -errno : 0;
}

int port_mtu(const struct port *port)
{
	struct ifreq request = {0};

	memcpy(request.ifr_name, port->interface, IF_NAMESIZE);
	return ioctl(port->rx_fd, SIOCGIFMTU, &request) ? -errno : request.ifr_mtu;
}

/* Returns whether the interface segments buffers. Links whose frames have to stay single are set up without that
 * (docs/network.md). */
static bool segments_itself(const struct port *port)
{
	struct ethtool_value value = {.cmd = ETHTOOL_GGSO};
	struct ifreq request = {.ifr_data = (void *)&value};

	memcpy(request.ifr_name, port->interface, IF_NAMESIZE);
	return !ioctl(port->rx_fd, SIOCETHTOOL, &request) && value.data;
}

static int bind_to(int fd, int ifindex, uint16_t protocol)
{
	struct sockaddr_ll address = {
		.sll_family = AF_PACKET,
		.sll_protocol = htons(protocol),
		.sll_ifindex = ifindex,
	};

	return bind(fd, (struct sockaddr *)&address, sizeof(address)) ? -errno : 0;
}

/* Frames that wait in the interface's queueing discipline count against the socket's send buffer, which must
 * therefore never be the tighter limit of the two. */
int port_bind_sender(int fd, int ifindex)
{
	if (port_set_option(fd, SOL_SOCKET, SO_SNDBUFFORCE, SEND_BUFFER_BYTES))
		port_set_option(fd, SOL_SOCKET, SO_SNDBUF, SEND_BUFFER_BYTES);
	return bind_to(fd, ifindex, 0);
}

static int join_promiscuous(int fd, int ifindex)
{
	struct packet_mreq request = {.mr_ifindex = ifindex, .mr_type = PACKET_MR_PROMISC};

	return setsockopt(fd, SOL_PACKET, PACKET_ADD_MEMBERSHIP, &request, sizeof(request)) ? -errno : 0;
}

/* Opens the receiving socket. Its protocol is 0 until bind, so that no frame of another interface gets into the ring. */
static int open_receive(struct port *port, int ifindex, uint32_t frames, const char **step)
{
	uint32_t slot_bytes;
	int error, mtu;

	*step = "packet socket";
	port->rx_fd = socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (port->rx_fd < 0)
		return -errno;
	*step = "MTU";
	mtu = port_mtu(port);
	if (mtu < 0)
		return mtu;
	*step = "socket options";
	if ((error = port_set_option(port->rx_fd, SOL_PACKET, PACKET_VERSION, TPACKET_V2)) ||
	    (error = port_set_option(port->rx_fd, SOL_PACKET, PACKET_IGNORE_OUTGOING, 1)) ||
	    (error = port_set_option(port->rx_fd, SOL_PACKET, PACKET_VNET_HDR, 1)) ||
	    (error = port_set_option(port->rx_fd, SOL_PACKET, PACKET_RESERVE, VLAN_TAG_BYTES)) ||
	    (error = port_set_option(port->rx_fd, SOL_PACKET, PACKET_COPY_THRESH, 1)))
		return error;
	/* Frames longer than a slot wait in the socket's queue. */
	port_set_option(port->rx_fd, SOL_SOCKET, SO_RCVBUFFORCE, 16 << 20);
	*step = "receive ring";
	mtu = mtu < 65535 ? mtu : 65535;
	slot_bytes = SLOT_OVERHEAD + VLAN_TAG_BYTES + (uint32_t)mtu + ETH_HLEN + VLAN_TAG_BYTES;
	if (!frames)
		frames = MAX_RING_BYTES / slot_bytes < RING_FRAMES ? MAX_RING_BYTES / slot_bytes : RING_FRAMES;
	frames = frames > PREFETCH_FRAMES ? frames : PREFETCH_FRAMES + 1;
	error = slots_map(&port->ring, port->rx_fd, PACKET_RX_RING, slot_bytes, frames);
	if (error)
		return error;
	*step = "bind";
	error = bind_to(port->rx_fd, ifindex, ETH_P_ALL);
	if (error)
		return error;
	*step = "promiscuous mode";
	return join_promiscuous(port->rx_fd, ifindex);
}

static int open_send(struct port *port, int ifindex, const char **step)
{
	int error;

	*step = "packet socket";
	port->tx_fd = socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, 0);
	if (port->tx_fd < 0)
		return -errno;
	*step = "socket options";
	error = port_set_option(port->tx_fd, SOL_PACKET, PACKET_VNET_HDR, 1);
	if (error)
		return error;
	*step = "bind";
	return port_bind_sender(port->tx_fd, ifindex);
}

/* Opens the ring for sending. Without it all frames go through the queue. */
static void open_send_ring(struct port *port, int ifindex)
{
	int mtu = port_mtu(port);

	if (mtu > 0)
		tx_ring_open(&port->tx_ring, ifindex, (uint32_t)mtu + ETH_HLEN);
}

static int allocate_queue(struct port *port)
{
	port->oversize = malloc(FRAME_MAX + VLAN_TAG_BYTES + sizeof(struct virtio_net_hdr));
	port->tx.arena = aligned_alloc(64, TX_ARENA_BYTES);
	port->tx.buffers = malloc(sizeof(*port->tx.buffers));
	return port->oversize && port->tx.arena && port->tx.buffers ? 0 : -ENOMEM;
}

int port_open_interface(struct port *port, uint32_t ring_frames, const char **step)
{
	unsigned int ifindex = if_nametoindex(port->interface);
	int error;

	*step = "interface";
	if (!ifindex)
		return -errno;
	*step = "memory";
	error = allocate_queue(port);
	if (!error)
		error = open_receive(port, (int)ifindex, ring_frames, step);
	if (!error)
		error = open_send(port, (int)ifindex, step);
	if (!error) {
		open_send_ring(port, (int)ifindex);
		port->gathers = segments_itself(port);
	}
	return error;
}

int port_attach(const struct port *port, const char **step)
{
	int ifindex = (int)if_nametoindex(port->interface);
	int error;

	*step = "interface";
	if (!ifindex)
		return -errno;
	*step = "bind";
	error = bind_to(port->rx_fd, ifindex, ETH_P_ALL);
	if (!error)
		error = bind_to(port->tx_fd, ifindex, 0);
	if (!error && port->tx_ring.fd >= 0)
		error = bind_to(port->tx_ring.fd, ifindex, 0);
	if (error)
		return error;
	*step = "promiscuous mode";
	return join_promiscuous(port->rx_fd, ifindex);
}

int port_open_cpu(struct port *port)
{
	int pair[2];
	int error = allocate_queue(port);

	if (error)
		return error;
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair))
		return -errno;
	port->rx_fd = pair[0];
	port->tx_fd = pair[0];
	for (int end = 0; end < 2; end++)
		if (port_set_option(pair[end], SOL_SOCKET, SO_SNDBUFFORCE, CPU_BUFFER_BYTES))
			port_set_option(pair[end], SOL_SOCKET, SO_SNDBUF, CPU_BUFFER_BYTES);
	return pair[1];
}

void port_close(struct port *port)
{
	slots_unmap(&port->ring);
	if (port->rx_fd >= 0)
		close(port->rx_fd);
	if (port->tx_fd >= 0 && port->tx_fd != port->rx_fd)
		close(port->tx_fd);
	tx_ring_close(&port->tx_ring);
	free(port->oversize);
	free(port->tx.arena);
	free(port->tx.buffers);
	drop_free(port->drops[0]);
	drop_free(port->drops[1]);
	pcap_close(port->pcap_in);
	pcap_close(port->pcap_out);
}

static void note_offload(struct frame *frame, const struct virtio_net_hdr *header)
{
	frame->flags = header->flags;
	frame->gso_type = header->gso_type;
	frame->gso_size = header->gso_size;
	frame->csum_start = header->csum_start;
	frame->csum_offset = header->csum_offset;
}

/* The kernel takes the tag out of a frame; PACKET_RESERVE left room to put it back. */
static void restore_vlan(struct frame *frame, const struct tpacket2_hdr *slot)
{
	uint16_t tpid = htons(slot->tp_status & TP_STATUS_VLAN_TPID_VALID ? slot->tp_vlan_tpid : ETH_P_8021Q);
	uint16_t tci = htons(slot->tp_vlan_tci);

	if (frame->len < MACS_BYTES)
		return;
	memmove(frame->data - VLAN_TAG_BYTES, frame->data, MACS_BYTES);
	frame->data -= VLAN_TAG_BYTES;
	frame->len += VLAN_TAG_BYTES;
	memcpy(frame->data + MACS_BYTES, &tpid, sizeof(tpid));
	memcpy(frame->data + MACS_BYTES + 2, &tci, sizeof(tci));
	if (frame->flags & VIRTIO_NET_HDR_F_NEEDS_CSUM)
		frame->csum_start += VLAN_TAG_BYTES;
}

/* A frame longer than its slot is in the socket's queue, in the order of the slots (PACKET_COPY_THRESH). */
static enum rx_result receive_oversize(struct port *port, struct frame *frame)
{
	struct virtio_net_hdr header;
	struct iovec iov[2] = {
		{.iov_base = &header, .iov_len = sizeof(header)},
		{.iov_base = port->oversize + VLAN_TAG_BYTES, .iov_len = FRAME_MAX},
	};
	struct msghdr message = {.msg_iov = iov, .msg_iovlen = 2};
	ssize_t len = recvmsg(port->rx_fd, &message, MSG_DONTWAIT);

	if (len < (ssize_t)sizeof(header) || message.msg_flags & MSG_TRUNC)
		return RX_SKIPPED;
	note_offload(frame, &header);
	frame->data = port->oversize + VLAN_TAG_BYTES;
	frame->len = (uint32_t)len - sizeof(header);
	return RX_FRAME;
}

/* Prefetches the next frames. A frame that another processor wrote takes 200 ns/KB to come into this processor's cache. */
static void prefetch_ahead(const struct port *port, uint32_t len)
{
	const uint8_t *slot = (uint8_t *)port->ring.slot[slots_after(&port->ring, port->next, PREFETCH_FRAMES)];

	len = len < PREFETCH_BYTES ? len + SLOT_OVERHEAD : PREFETCH_BYTES;
	for (uint32_t at = 0; at < len; at += 64)
		__builtin_prefetch(slot + at);
}

static enum rx_result receive_from_ring(struct port *port, struct frame *frame)
{
	struct tpacket2_hdr *slot = port->ring.slot[port->next];
	uint32_t status = __atomic_load_n(&slot->tp_status, __ATOMIC_ACQUIRE);
	enum rx_result result = RX_FRAME;

	if (!(status & TP_STATUS_USER))
		return RX_EMPTY;
	frame->time_ns = slot->tp_sec * 1000000000ull + slot->tp_nsec;
	frame->data = (uint8_t *)slot + slot->tp_mac;
	frame->len = slot->tp_snaplen;
	if (status & TP_STATUS_COPY)
		result = receive_oversize(port, frame);
	else if (slot->tp_snaplen < slot->tp_len)
		result = RX_SKIPPED;
	else
		note_offload(frame, (struct virtio_net_hdr *)(frame->data - sizeof(struct virtio_net_hdr)));
	if (result == RX_SKIPPED) {
		port->stats.rx_truncated++;
		return result;
	}
	if (status & TP_STATUS_VLAN_VALID)
		restore_vlan(frame, slot);
	prefetch_ahead(port, frame->len);
	return result;
}

static enum rx_result receive_from_socket(struct port *port, struct frame *frame)
{
	ssize_t len = recv(port->rx_fd, port->oversize, FRAME_MAX, MSG_DONTWAIT | MSG_TRUNC);

	if (len <= 0)
		return RX_EMPTY;
	if (len > FRAME_MAX) {
		port->stats.rx_truncated++;
		return RX_SKIPPED;
	}
	*frame = (struct frame){.data = port->oversize, .len = (uint32_t)len};
	return RX_FRAME;
}

enum rx_result port_receive(struct port *port, struct frame *frame)
{
	return port->ring.count ? receive_from_ring(port, frame) : receive_from_socket(port, frame);
}

bool port_admit(struct port *port, uint32_t len)
{
	if (port->drops[0] && drop_frame(port->drops[0], len))
		return false;
	port->stats.rx_packets++;
	port->stats.rx_bytes += len;
	return true;
}

void port_release(struct port *port)
{
	if (!port->ring.count)
		return;
	__atomic_store_n(&port->ring.slot[port->next]->tp_status, TP_STATUS_KERNEL, __ATOMIC_RELEASE);
	port->next = slots_after(&port->ring, port->next, 1);
}

void port_collect_ring_drops(struct port *port)
{
	struct tpacket_stats counts;
	socklen_t length = sizeof(counts);

	if (port->ring.count && !getsockopt(port->rx_fd, SOL_PACKET, PACKET_STATISTICS, &counts, &length))
		port->stats.ring_drops += counts.tp_drops;
}
