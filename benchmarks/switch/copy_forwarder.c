/* Sends every frame back where it came from: what the packet loop would cost with an empty program.
 *
 * copy_forwarder RING_FRAMES BATCH INTERFACE...
 *
 * The same techniques as the packet loop of toolchain/p4native/switch/io: one thread, TPACKET_V2 rings in and out of each port, one system
 * call for a batch, poll when idle. Each frame is copied from ring to ring. On SIGTERM it prints one JSON object:
 * packets and processor time.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <linux/virtio_net.h>
#include <net/if.h>
#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define MAX_PORTS 16
#define BLOCK_BYTES (256u << 10)
#define TX_FRAMES 64
#define TX_DATA_AT (TPACKET2_HDRLEN - sizeof(struct sockaddr_ll))

struct ring {
	int fd;
	uint8_t *memory;
	uint32_t frame_bytes, per_block, frames, next;
};

struct port {
	struct ring rx, tx;
};

static volatile sig_atomic_t stopped;
static uint64_t packets;

static void stop(int number)
{
	(void)number;
	stopped = 1;
}

static uint64_t thread_cpu_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static void fail(const char *what)
{
	fprintf(stderr, "copy_forwarder: %s: %s\n", what, strerror(errno));
	exit(1);
}

static void set_option(int fd, int level, int option, int value)
{
	if (setsockopt(fd, level, option, &value, sizeof(value)))
		fail("socket option");
}

static void open_ring(struct ring *ring, int kind, uint32_t mtu, uint32_t frames)
{
	struct tpacket_req request;

	ring->frame_bytes = (mtu + 160 + 63) & ~63u;
	ring->per_block = BLOCK_BYTES / ring->frame_bytes;
	request.tp_block_size = BLOCK_BYTES;
	request.tp_block_nr = (frames + ring->per_block - 1) / ring->per_block;
	request.tp_frame_size = ring->frame_bytes;
	request.tp_frame_nr = ring->frames = request.tp_block_nr * ring->per_block;
	if (setsockopt(ring->fd, SOL_PACKET, kind, &request, sizeof(request)))
		fail("packet ring");
	ring->memory = mmap(NULL, (size_t)request.tp_block_nr * BLOCK_BYTES, PROT_READ | PROT_WRITE,
			    MAP_SHARED | MAP_POPULATE, ring->fd, 0);
	if (ring->memory == MAP_FAILED)
		fail("mmap");
}

static void open_socket(struct ring *ring, const char *interface, uint16_t protocol, int kind, uint32_t frames)
{
	struct sockaddr_ll address = {.sll_family = AF_PACKET, .sll_protocol = htons(protocol)};
	struct ifreq request = {0};

	ring->fd = socket(AF_PACKET, SOCK_RAW, 0);
	strncpy(request.ifr_name, interface, IF_NAMESIZE - 1);
	address.sll_ifindex = (int)if_nametoindex(interface);
	if (ring->fd < 0 || ioctl(ring->fd, SIOCGIFMTU, &request))
		fail(interface);
	set_option(ring->fd, SOL_PACKET, PACKET_VERSION, TPACKET_V2);
	set_option(ring->fd, SOL_PACKET, kind == PACKET_RX_RING ? PACKET_IGNORE_OUTGOING : PACKET_VNET_HDR, 1);
	open_ring(ring, kind, (uint32_t)request.ifr_mtu, frames);
	if (bind(ring->fd, (void *)&address, sizeof(address)))
		fail(interface);
}

static void open_port(struct port *port, const char *interface, uint32_t frames)
{
	struct packet_mreq promiscuous = {.mr_type = PACKET_MR_PROMISC};

	open_socket(&port->rx, interface, ETH_P_ALL, PACKET_RX_RING, frames);
	promiscuous.mr_ifindex = (int)if_nametoindex(interface);
	if (setsockopt(port->rx.fd, SOL_PACKET, PACKET_ADD_MEMBERSHIP, &promiscuous, sizeof(promiscuous)))
		fail(interface);
	open_socket(&port->tx, interface, 0, PACKET_TX_RING, TX_FRAMES);
	set_option(port->tx.fd, SOL_SOCKET, SO_SNDBUFFORCE, 256 << 20);
}

static struct tpacket2_hdr *slot_of(const struct ring *ring)
{
	return (struct tpacket2_hdr *)(ring->memory + (size_t)(ring->next / ring->per_block) * BLOCK_BYTES +
				       (size_t)(ring->next % ring->per_block) * ring->frame_bytes);
}

static void advance(struct ring *ring, struct tpacket2_hdr *slot, uint32_t status)
{
	__atomic_store_n(&slot->tp_status, status, __ATOMIC_RELEASE);
	ring->next = ring->next + 1 < ring->frames ? ring->next + 1 : 0;
}

static void send_waiting(struct port *port)
{
	if (send(port->tx.fd, NULL, 0, MSG_DONTWAIT) < 0)
		fail("send");
}

static void copy_frame(struct port *port, const struct tpacket2_hdr *from)
{
	struct virtio_net_hdr header = {.hdr_len = (uint16_t)from->tp_snaplen}; /* the kernel copies it all */
	struct tpacket2_hdr *to = slot_of(&port->tx);
	uint8_t *data = (uint8_t *)to + TX_DATA_AT;

	if (__atomic_load_n(&to->tp_status, __ATOMIC_ACQUIRE) != TP_STATUS_AVAILABLE)
		send_waiting(port);
	memcpy(data, &header, sizeof(header));
	memcpy(data + sizeof(header), (const uint8_t *)from + from->tp_mac, from->tp_snaplen);
	to->tp_len = (uint32_t)sizeof(header) + from->tp_snaplen;
	advance(&port->tx, to, TP_STATUS_SEND_REQUEST);
}

static uint32_t forward(struct port *port, uint32_t batch)
{
	uint32_t count = 0;

	for (; count < batch; count++) {
		struct tpacket2_hdr *slot = slot_of(&port->rx);

		if (!(__atomic_load_n(&slot->tp_status, __ATOMIC_ACQUIRE) & TP_STATUS_USER))
			break;
		copy_frame(port, slot);
		advance(&port->rx, slot, TP_STATUS_KERNEL);
	}
	if (count)
		send_waiting(port);
	packets += count;
	return count;
}

int main(int argc, char **argv)
{
	static struct port ports[MAX_PORTS];
	struct pollfd wait_for[MAX_PORTS];
	struct sigaction action = {.sa_handler = stop};
	uint64_t cpu_ns;
	int count = argc - 3;
	uint32_t batch;

	if (count < 1 || count > MAX_PORTS) {
		fprintf(stderr, "copy_forwarder RING_FRAMES BATCH INTERFACE...\n");
		return 2;
	}
	batch = (uint32_t)atoi(argv[2]);
	sigaction(SIGTERM, &action, NULL);
	for (int i = 0; i < count; i++) {
		open_port(&ports[i], argv[3 + i], (uint32_t)atoi(argv[1]));
		wait_for[i] = (struct pollfd){.fd = ports[i].rx.fd, .events = POLLIN};
	}
	cpu_ns = thread_cpu_ns();
	puts("ready");
	fflush(stdout);
	while (!stopped) {
		uint32_t taken = 0;

		for (int i = 0; i < count; i++)
			taken += forward(&ports[i], batch);
		if (!taken)
			poll(wait_for, (nfds_t)count, -1);
	}
	cpu_ns = thread_cpu_ns() - cpu_ns;
	printf("{\"packets\": %llu, \"cpu_s\": %.6f}\n", (unsigned long long)packets, (double)cpu_ns / 1e9);
	return 0;
}
