/* One port: TPACKET_V2 receive ring in, sendmmsg out (see port.h).
 *
 * TPACKET_V2 rather than V3: V3 hands over whole blocks, after a timeout of at least one jiffy (4 ms at
 * HZ=250) when traffic is slow; a window of a few slots would wait that long per round trip.
 * sendmmsg rather than PACKET_TX_RING: on a veth the transmit ring's slot is reported free as soon as the frame
 * crosses to the peer, while a socket there may still hold the slot's pages, so frames could change
 * under their reader. Queueing disciplines of the interface apply (no PACKET_QDISC_BYPASS).
 */
#include "port.h"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <linux/virtio_net.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#define VLAN_TAG_BYTES 4
#define MACS_BYTES 12
/* tpacket2_hdr, sockaddr_ll, alignment and the virtio_net_hdr, in front of the frame in its slot */
#define SLOT_OVERHEAD 128
#define BLOCK_BYTES (256u << 10)
#define SEND_BUFFER_BYTES (256 << 20)
#define CPU_BUFFER_BYTES (8 << 20)

static int set_option(int fd, int level, int option, int value)
{
	return setsockopt(fd, level, option, &value, sizeof(value)) ? -errno : 0;
}

static int interface_mtu(int fd, const char interface[static IF_NAMESIZE])
{
	struct ifreq request = {0};

	memcpy(request.ifr_name, interface, IF_NAMESIZE);
	return ioctl(fd, SIOCGIFMTU, &request) ? -errno : request.ifr_mtu;
}

static int map_ring(struct port *port, uint32_t frames, int mtu)
{
	uint32_t slot = SLOT_OVERHEAD + VLAN_TAG_BYTES + (uint32_t)mtu + ETH_HLEN + VLAN_TAG_BYTES;
	struct tpacket_req request;
	uint32_t blocks;

	port->frame_bytes = (slot + 63) & ~63u;
	port->block_bytes = BLOCK_BYTES;
	port->frames_per_block = BLOCK_BYTES / port->frame_bytes;
	blocks = (frames + port->frames_per_block - 1) / port->frames_per_block;
	port->frames = blocks * port->frames_per_block;
	request = (struct tpacket_req){
		.tp_block_size = BLOCK_BYTES,
		.tp_block_nr = blocks,
		.tp_frame_size = port->frame_bytes,
		.tp_frame_nr = port->frames,
	};
	if (setsockopt(port->rx_fd, SOL_PACKET, PACKET_RX_RING, &request, sizeof(request)))
		return -errno;
	port->ring_bytes = (size_t)blocks * BLOCK_BYTES;
	port->ring = mmap(NULL, port->ring_bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, port->rx_fd, 0);
	if (port->ring == MAP_FAILED) {
		port->ring = NULL;
		return -errno;
	}
	return 0;
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

static int join_promiscuous(int fd, int ifindex)
{
	struct packet_mreq request = {.mr_ifindex = ifindex, .mr_type = PACKET_MR_PROMISC};

	return setsockopt(fd, SOL_PACKET, PACKET_ADD_MEMBERSHIP, &request, sizeof(request)) ? -errno : 0;
}

/* Protocol 0 until bind: no frame of another interface gets into the ring. */
static int open_receive(struct port *port, int ifindex, uint32_t frames, const char **step)
{
	int error, mtu;

	*step = "packet socket";
	port->rx_fd = socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (port->rx_fd < 0)
		return -errno;
	*step = "MTU";
	mtu = interface_mtu(port->rx_fd, port->interface);
	if (mtu < 0)
		return mtu;
	*step = "socket options";
	if ((error = set_option(port->rx_fd, SOL_PACKET, PACKET_VERSION, TPACKET_V2)) ||
	    (error = set_option(port->rx_fd, SOL_PACKET, PACKET_IGNORE_OUTGOING, 1)) ||
	    (error = set_option(port->rx_fd, SOL_PACKET, PACKET_VNET_HDR, 1)) ||
	    (error = set_option(port->rx_fd, SOL_PACKET, PACKET_RESERVE, VLAN_TAG_BYTES)) ||
	    (error = set_option(port->rx_fd, SOL_PACKET, PACKET_COPY_THRESH, 1)))
		return error;
	/* Frames longer than a slot wait in the socket's queue. */
	set_option(port->rx_fd, SOL_SOCKET, SO_RCVBUFFORCE, 16 << 20);
	*step = "receive ring";
	error = map_ring(port, frames, mtu < 65535 ? mtu : 65535);
	if (error)
		return error;
	*step = "bind";
	error = bind_to(port->rx_fd, ifindex, ETH_P_ALL);
	if (error)
		return error;
	*step = "promiscuous mode";
	return join_promiscuous(port->rx_fd, ifindex);
}

/* Frames that wait in the interface's queueing discipline count against the socket's send buffer, which must
 * therefore never be the tighter limit of the two. */
static int open_send(struct port *port, int ifindex, const char **step)
{
	*step = "packet socket";
	port->tx_fd = socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, 0);
	if (port->tx_fd < 0)
		return -errno;
	if (set_option(port->tx_fd, SOL_SOCKET, SO_SNDBUFFORCE, SEND_BUFFER_BYTES))
		set_option(port->tx_fd, SOL_SOCKET, SO_SNDBUF, SEND_BUFFER_BYTES);
	*step = "bind";
	return bind_to(port->tx_fd, ifindex, 0);
}

static int allocate_queue(struct port *port)
{
	port->oversize = malloc(FRAME_MAX + VLAN_TAG_BYTES + sizeof(struct virtio_net_hdr));
	port->tx.arena = aligned_alloc(64, TX_ARENA_BYTES);
	if (!port->oversize || !port->tx.arena)
		return -ENOMEM;
	for (uint32_t i = 0; i < TX_BATCH; i++) {
		port->tx.messages[i].msg_hdr.msg_iov = &port->tx.iov[i];
		port->tx.messages[i].msg_hdr.msg_iovlen = 1;
	}
	return 0;
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
	return error;
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
		if (set_option(pair[end], SOL_SOCKET, SO_SNDBUFFORCE, CPU_BUFFER_BYTES))
			set_option(pair[end], SOL_SOCKET, SO_SNDBUF, CPU_BUFFER_BYTES);
	return pair[1];
}

void port_close(struct port *port)
{
	if (port->ring)
		munmap(port->ring, port->ring_bytes);
	if (port->rx_fd >= 0)
		close(port->rx_fd);
	if (port->tx_fd >= 0 && port->tx_fd != port->rx_fd)
		close(port->tx_fd);
	free(port->oversize);
	free(port->tx.arena);
	drop_free(port->drops[0]);
	drop_free(port->drops[1]);
	pcap_close(port->pcap_in);
	pcap_close(port->pcap_out);
}

static struct tpacket2_hdr *slot_of(const struct port *port, uint32_t index)
{
	uint32_t block = index / port->frames_per_block;
	uint32_t within = index % port->frames_per_block;

	return (struct tpacket2_hdr *)(port->ring + (size_t)block * port->block_bytes +
				       (size_t)within * port->frame_bytes);
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

static enum rx_result receive_from_ring(struct port *port, struct frame *frame)
{
	struct tpacket2_hdr *slot = slot_of(port, port->next);
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
	enum rx_result result = port->ring ? receive_from_ring(port, frame) : receive_from_socket(port, frame);

	if (result == RX_FRAME && port->drops[0] && drop_frame(port->drops[0], frame->len))
		return RX_SKIPPED;
	if (result == RX_FRAME) {
		port->stats.rx_packets++;
		port->stats.rx_bytes += frame->len;
	}
	return result;
}

void port_release(struct port *port)
{
	if (!port->ring)
		return;
	__atomic_store_n(&slot_of(port, port->next)->tp_status, TP_STATUS_KERNEL, __ATOMIC_RELEASE);
	if (++port->next == port->frames)
		port->next = 0;
	__builtin_prefetch(slot_of(port, port->next));
}

uint8_t *port_reserve(struct port *port, uint32_t max_len)
{
	struct tx_queue *tx = &port->tx;

	if (tx->count == TX_BATCH || max_len > TX_ARENA_BYTES - tx->used)
		port_flush(port);
	if (max_len > TX_ARENA_BYTES) {
		port->stats.tx_oversize++;
		return NULL;
	}
	return tx->arena + tx->used;
}

void port_commit(struct port *port, uint32_t len)
{
	struct tx_queue *tx = &port->tx;

	if (port->drops[1] && drop_frame(port->drops[1], len))
		return;
	tx->iov[tx->count].iov_base = tx->arena + tx->used;
	tx->iov[tx->count].iov_len = len;
	tx->count++;
	tx->used += (len + 63) & ~63u;
	if (tx->used > TX_ARENA_BYTES)
		tx->used = TX_ARENA_BYTES;
}

static void count_send_error(struct port *port, int error)
{
	if (error == ENOBUFS || error == EAGAIN || error == ENOMEM)
		port->stats.tx_drops++;
	else if (error == EMSGSIZE)
		port->stats.tx_oversize++;
	else
		port->stats.tx_errors++;
}

/* sendmmsg ends early at a message that failed and does not say why; trying it again could send a frame that the
 * interface's queue has already counted as dropped. */
static void count_unnamed_error(struct port *port, size_t len)
{
	int mtu = interface_mtu(port->tx_fd, port->interface);

	count_send_error(port, mtu > 0 && len > (size_t)mtu + ETH_HLEN ? EMSGSIZE : ENOBUFS);
}

static void send_all(struct port *port)
{
	struct tx_queue *tx = &port->tx;
	uint32_t done = 0;

	while (done < tx->count) {
		int sent = sendmmsg(port->tx_fd, tx->messages + done, tx->count - done, MSG_DONTWAIT);

		if (sent < 0 && errno == EINTR)
			continue;
		if (sent < 0)
			count_send_error(port, errno);
		for (int i = 0; i < sent; i++)
			port->stats.tx_bytes += tx->iov[done++].iov_len;
		port->stats.tx_packets += sent > 0 ? (uint32_t)sent : 0;
		if (sent > 0 && done < tx->count)
			count_unnamed_error(port, tx->iov[done].iov_len);
		done++;
	}
}

static void capture_queue(struct port *port)
{
	struct timespec now;
	uint64_t now_ns;

	clock_gettime(CLOCK_REALTIME, &now);
	now_ns = (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
	for (uint32_t i = 0; i < port->tx.count; i++) {
		const struct iovec *frame = &port->tx.iov[i];

		if (pcap_write(port->pcap_out, now_ns, frame->iov_base, (uint32_t)frame->iov_len))
			port->pcap_errors++;
	}
}

void port_flush(struct port *port)
{
	if (!port->tx.count)
		return;
	if (port->pcap_out)
		capture_queue(port);
	send_all(port);
	port->tx.count = 0;
	port->tx.used = 0;
}

void port_collect_ring_drops(struct port *port)
{
	struct tpacket_stats counts;
	socklen_t length = sizeof(counts);

	if (port->ring && !getsockopt(port->rx_fd, SOL_PACKET, PACKET_STATISTICS, &counts, &length))
		port->stats.ring_drops += counts.tp_drops;
}
