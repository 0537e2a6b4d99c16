/* Sends every frame back where it came from: what the packet loop would cost with an empty program.
 *
 * copy_forwarder RING_FRAMES BATCH INTERFACE...
 *
 * The same techniques as the packet loop of switch/io: one thread, a TPACKET_V2 ring a port, sendmmsg, poll when
 * idle. Frames are sent from the ring's own memory, so it copies nothing itself. On SIGTERM it prints one JSON
 * object: packets and processor time.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
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
#define MAX_BATCH 256
#define BLOCK_BYTES (256u << 10)

struct port {
	int rx_fd, tx_fd;
	uint8_t *ring;
	uint32_t frame_bytes, per_block, frames, next;
	struct iovec iov[MAX_BATCH];
	struct mmsghdr messages[MAX_BATCH];
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

static void open_ring(struct port *port, const char *interface, uint32_t frames)
{
	struct ifreq request = {0};
	struct tpacket_req ring;

	port->rx_fd = socket(AF_PACKET, SOCK_RAW, 0);
	strncpy(request.ifr_name, interface, IF_NAMESIZE - 1);
	if (port->rx_fd < 0 || ioctl(port->rx_fd, SIOCGIFMTU, &request))
		fail(interface);
	set_option(port->rx_fd, SOL_PACKET, PACKET_VERSION, TPACKET_V2);
	set_option(port->rx_fd, SOL_PACKET, PACKET_IGNORE_OUTGOING, 1);
	port->frame_bytes = ((uint32_t)request.ifr_mtu + 160 + 63) & ~63u;
	port->per_block = BLOCK_BYTES / port->frame_bytes;
	ring.tp_block_size = BLOCK_BYTES;
	ring.tp_block_nr = (frames + port->per_block - 1) / port->per_block;
	ring.tp_frame_size = port->frame_bytes;
	ring.tp_frame_nr = port->frames = ring.tp_block_nr * port->per_block;
	if (setsockopt(port->rx_fd, SOL_PACKET, PACKET_RX_RING, &ring, sizeof(ring)))
		fail("PACKET_RX_RING");
	port->ring = mmap(NULL, (size_t)ring.tp_block_nr * BLOCK_BYTES, PROT_READ | PROT_WRITE,
			  MAP_SHARED | MAP_POPULATE, port->rx_fd, 0);
	if (port->ring == MAP_FAILED)
		fail("mmap");
}

static void open_port(struct port *port, const char *interface, uint32_t frames)
{
	struct sockaddr_ll address = {.sll_family = AF_PACKET, .sll_protocol = htons(ETH_P_ALL)};
	struct packet_mreq promiscuous = {.mr_type = PACKET_MR_PROMISC};

	open_ring(port, interface, frames);
	address.sll_ifindex = promiscuous.mr_ifindex = (int)if_nametoindex(interface);
	if (bind(port->rx_fd, (void *)&address, sizeof(address)) ||
	    setsockopt(port->rx_fd, SOL_PACKET, PACKET_ADD_MEMBERSHIP, &promiscuous, sizeof(promiscuous)))
		fail(interface);
	port->tx_fd = socket(AF_PACKET, SOCK_RAW, 0);
	address.sll_protocol = 0;
	if (port->tx_fd < 0 || bind(port->tx_fd, (void *)&address, sizeof(address)))
		fail(interface);
	set_option(port->tx_fd, SOL_SOCKET, SO_SNDBUFFORCE, 256 << 20);
	for (int i = 0; i < MAX_BATCH; i++) {
		port->messages[i].msg_hdr.msg_iov = &port->iov[i];
		port->messages[i].msg_hdr.msg_iovlen = 1;
	}
}

static struct tpacket2_hdr *slot_of(const struct port *port, uint32_t index)
{
	index %= port->frames;
	return (struct tpacket2_hdr *)(port->ring + (size_t)(index / port->per_block) * BLOCK_BYTES +
				       (size_t)(index % port->per_block) * port->frame_bytes);
}

static uint32_t forward(struct port *port, uint32_t batch)
{
	uint32_t count = 0;
	unsigned int done = 0;

	while (count < batch) {
		struct tpacket2_hdr *slot = slot_of(port, port->next + count);

		if (!(__atomic_load_n(&slot->tp_status, __ATOMIC_ACQUIRE) & TP_STATUS_USER))
			break;
		port->iov[count].iov_base = (uint8_t *)slot + slot->tp_mac;
		port->iov[count].iov_len = slot->tp_snaplen;
		count++;
	}
	while (done < count) {
		int sent = sendmmsg(port->tx_fd, port->messages + done, count - done, MSG_DONTWAIT);

		done += sent > 0 ? (unsigned int)sent : 1;
	}
	for (uint32_t i = 0; i < count; i++)
		__atomic_store_n(&slot_of(port, port->next + i)->tp_status, TP_STATUS_KERNEL, __ATOMIC_RELEASE);
	port->next = (port->next + count) % port->frames;
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
	if (batch > MAX_BATCH)
		batch = MAX_BATCH;
	sigaction(SIGTERM, &action, NULL);
	for (int i = 0; i < count; i++) {
		open_port(&ports[i], argv[3 + i], (uint32_t)atoi(argv[1]));
		wait_for[i] = (struct pollfd){.fd = ports[i].rx_fd, .events = POLLIN};
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
