/* Offers aggregation packets to a switch and times its answers.
 *
 * load_generator LANES SLOTS WINDOW SECONDS PID SEGMENTS INTERFACE...
 *
 * Each interface is one worker. Chunk c travels in slot c mod SLOTS with a tag that advances by one each time
 * the slot is used, so every packet is new. An answer is whatever arrives on the interfaces, counted by the kernel
 * (/proc/self/net/dev), which costs this process nothing per packet. The kernel counts a buffer of several packets as
 * one, without the headers that its segments repeat: bytes and buffers together tell how many packets came.
 *
 * SEGMENTS: packets that are sent as one buffer, for the kernel or the switch to cut; 1: each is sent by itself.
 *
 * PID 0: sends as fast as answers come, in bursts of half of WINDOW, at most WINDOW packets unanswered. Sending a
 * packet into a veth costs about as much as forwarding it, so this is for switches slower than that.
 * Else the process is stopped, WINDOW packets are put into its receive rings, and the time from its continuing to
 * the last answer is taken, over and over: the switch is then never short of work, nor this process in its way.
 *
 * Prints one JSON object: packets sent and answered, seconds, how often answers stopped coming for 200 ms, and the
 * nanoseconds of each such drain.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <linux/virtio_net.h>
#include <net/if.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define MAX_PORTS 16
#define MAX_BURST 64
#define HEADERS_BYTES 54
#define LOWER_HEADERS_BYTES 42
#define UDP_AT 34
#define GSO_UDP_L4 5 /* VIRTIO_NET_HDR_GSO_UDP_L4, Linux 6.2 */
#define UDP_CHECKSUM_AT 40
#define SLOT_AT 46
#define TAG_AT 50
#define JOB 1
#define AGGREGATOR_PORT 0xbee0
#define STALL_NS 200000000ull
#define FIRST_TAG 1
#define MAX_DRAINS 4096

struct port {
	const char *interface;
	int fd;
	uint8_t *frames; /* one frame for each slot */
	uint32_t *sums;	 /* for each frame, the sum of what its UDP checksum covers except the tag, not folded */
	struct iovec iov[3 * MAX_BURST];
	struct mmsghdr messages[MAX_BURST];
	struct {
		struct virtio_net_hdr offload;
		uint8_t lower[LOWER_HEADERS_BYTES];
	} buffers[MAX_BURST]; /* the header that each buffer begins with */
};

struct load {
	struct port ports[MAX_PORTS];
	uint32_t port_count, lanes, slots, window, frame_bytes;
	uint32_t burst;	   /* chunks sent at a time; each is one packet for each port */
	uint32_t segments; /* packets in a buffer; 1: no buffers are used */
	uint64_t chunk, sent, lost, stalls, answered, before;
	uint64_t drain_ns[MAX_DRAINS];
	uint32_t drains;
	int counters_fd;
};

static uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static void fail(const char *what)
{
	fprintf(stderr, "load_generator: %s: %s\n", what, strerror(errno));
	exit(1);
}

static void store16(uint8_t *at, uint16_t value)
{
	value = htons(value);
	memcpy(at, &value, sizeof(value));
}

static void store32(uint8_t *at, uint32_t value)
{
	value = htonl(value);
	memcpy(at, &value, sizeof(value));
}

static uint32_t sum_of_words(const uint8_t *data, uint32_t len)
{
	uint32_t sum = 0;

	for (uint32_t i = 0; i < len; i += 2)
		sum += (uint32_t)(data[i] << 8 | data[i + 1]);
	return sum;
}

static uint16_t checksum(uint32_t sum)
{
	while (sum >> 16)
		sum = (sum & 0xffff) + (sum >> 16);
	return (uint16_t)~sum;
}

/* RFC 768: a sum of zero is sent as all ones. */
static void set_tag(uint8_t *frame, uint32_t sum, uint32_t tag)
{
	uint16_t value = checksum(sum + (tag >> 16) + (tag & 0xffff));

	store32(frame + TAG_AT, tag);
	store16(frame + UDP_CHECKSUM_AT, value ? value : 0xffff);
}

/* docs/protocol.md; values differ by port, slot and lane. Returns the sum of its UDP checksum without tag. */
static uint32_t write_frame(const struct load *load, uint32_t rank, uint32_t slot, uint8_t *frame)
{
	static const uint8_t start[] = {2, 0, 0, 0, 0xff, 0xfe, 2, 0, 0, 0, 0, 0, 8, 0, 0x45, 0};
	uint16_t length = (uint16_t)(load->frame_bytes - 14);

	memset(frame, 0, HEADERS_BYTES);
	memcpy(frame, start, sizeof(start));
	frame[11] = (uint8_t)(rank + 1);
	store16(frame + 16, length);
	frame[22] = 64;
	frame[23] = 17;
	store32(frame + 26, 0x0a000001 + rank);
	store32(frame + 30, 0x0a00fffe);
	store16(frame + 24, checksum(sum_of_words(frame + 14, 20)));
	store16(frame + 34, AGGREGATOR_PORT + 1 + JOB);
	store16(frame + 36, AGGREGATOR_PORT);
	store16(frame + 38, (uint16_t)(length - 20));
	frame[42] = 1;
	store16(frame + 44, JOB);
	store16(frame + SLOT_AT, (uint16_t)slot);
	for (uint32_t lane = 0; lane < load->lanes; lane++)
		store32(frame + HEADERS_BYTES + 4 * lane, (rank + 1) * 1000003 + slot * 4099 + lane);
	/* Pseudo header: addresses, protocol, length. */
	return sum_of_words(frame + 26, 8) + 17 + (uint32_t)(length - 20) +
	       sum_of_words(frame + 34, load->frame_bytes - 34);
}

static void open_port(struct load *load, uint32_t rank, const char *interface)
{
	struct port *port = &load->ports[rank];
	struct sockaddr_ll address = {.sll_family = AF_PACKET};
	int one = 1, buffer = 64 << 20;

	port->interface = interface;
	address.sll_ifindex = (int)if_nametoindex(interface);
	port->fd = socket(AF_PACKET, SOCK_RAW, 0);
	if (!address.sll_ifindex || port->fd < 0 || bind(port->fd, (void *)&address, sizeof(address)))
		fail(interface);
	setsockopt(port->fd, SOL_PACKET, PACKET_QDISC_BYPASS, &one, sizeof(one));
	if (load->segments > 1 && setsockopt(port->fd, SOL_PACKET, PACKET_VNET_HDR, &one, sizeof(one)))
		fail("PACKET_VNET_HDR");
	setsockopt(port->fd, SOL_SOCKET, SO_SNDBUFFORCE, &buffer, sizeof(buffer));
	port->frames = malloc((size_t)load->slots * load->frame_bytes);
	port->sums = malloc(load->slots * sizeof(*port->sums));
	if (!port->frames || !port->sums)
		fail("memory");
	for (uint32_t slot = 0; slot < load->slots; slot++)
		port->sums[slot] =
			write_frame(load, rank, slot, port->frames + (size_t)slot * load->frame_bytes);
}

/* Returns how many frames have arrived on all ports since the start. */
static uint64_t count_answers(const struct load *load)
{
	char text[8192];
	ssize_t len = pread(load->counters_fd, text, sizeof(text) - 1, 0);
	uint64_t total = 0;

	if (len <= 0)
		fail("/proc/self/net/dev");
	text[len] = 0;
	for (uint32_t i = 0; i < load->port_count; i++) {
		char name[IF_NAMESIZE + 2];
		const char *line;
		unsigned long long bytes, packets;

		snprintf(name, sizeof(name), "%s:", load->ports[i].interface);
		line = strstr(text, name);
		if (!line || sscanf(line + strlen(name), "%llu %llu", &bytes, &packets) != 2)
			fail(name);
		total += (bytes - packets * LOWER_HEADERS_BYTES) / (load->frame_bytes - LOWER_HEADERS_BYTES);
	}
	return total - load->before;
}

/* Makes a message of each frame in the burst. Returns how many messages. */
static unsigned int make_frames(const struct load *load, struct port *port)
{
	for (uint32_t i = 0; i < load->burst; i++) {
		uint64_t chunk = load->chunk + i;
		uint32_t slot = (uint32_t)(chunk % load->slots);
		uint8_t *frame = port->frames + (size_t)slot * load->frame_bytes;

		set_tag(frame, port->sums[slot], FIRST_TAG + (uint32_t)(chunk / load->slots));
		port->iov[i] = (struct iovec){.iov_base = frame, .iov_len = load->frame_bytes};
		port->messages[i].msg_hdr = (struct msghdr){.msg_iov = &port->iov[i], .msg_iovlen = 1};
	}
	return load->burst;
}

/* Writes the headers of a buffer of several frames. The checksums are left to whoever cuts it into packets. */
static void begin_buffer(const struct load *load, struct port *port, uint32_t number, const uint8_t *frame,
			 uint32_t count)
{
	uint32_t payload = load->frame_bytes - LOWER_HEADERS_BYTES, udp_bytes = 8 + count * payload;
	uint8_t *lower = port->buffers[number].lower;

	memcpy(lower, frame, LOWER_HEADERS_BYTES);
	store16(lower + 16, (uint16_t)(udp_bytes + 20));
	store16(lower + 24, 0);
	store16(lower + 24, checksum(sum_of_words(lower + 14, 20)));
	store16(lower + UDP_AT + 4, (uint16_t)udp_bytes);
	store16(lower + UDP_CHECKSUM_AT, (uint16_t)~checksum(sum_of_words(lower + 26, 8) + 17 + udp_bytes));
	port->buffers[number].offload = (struct virtio_net_hdr){
		.flags = VIRTIO_NET_HDR_F_NEEDS_CSUM,
		.gso_type = GSO_UDP_L4,
		.hdr_len = LOWER_HEADERS_BYTES,
		.gso_size = (uint16_t)payload,
		.csum_start = UDP_AT,
		.csum_offset = UDP_CHECKSUM_AT - UDP_AT,
	};
}

/* Puts the frames of the burst into buffers of load->segments each. Returns how many messages. */
static unsigned int make_buffers(const struct load *load, struct port *port)
{
	struct iovec *part = port->iov;
	unsigned int messages = 0;

	for (uint32_t first = 0; first < load->burst; first += load->segments, messages++) {
		uint32_t count = load->burst - first < load->segments ? load->burst - first : load->segments;

		port->messages[messages].msg_hdr = (struct msghdr){.msg_iov = part, .msg_iovlen = 1 + count};
		*part++ = (struct iovec){.iov_base = &port->buffers[messages],
					 .iov_len = sizeof(struct virtio_net_hdr) + LOWER_HEADERS_BYTES};
		for (uint32_t i = first; i < first + count; i++) {
			uint64_t chunk = load->chunk + i;
			uint32_t slot = (uint32_t)(chunk % load->slots);
			uint8_t *frame = port->frames + (size_t)slot * load->frame_bytes;

			if (i == first)
				begin_buffer(load, port, messages, frame, count);
			store32(frame + TAG_AT, FIRST_TAG + (uint32_t)(chunk / load->slots));
			*part++ = (struct iovec){.iov_base = frame + LOWER_HEADERS_BYTES,
						 .iov_len = load->frame_bytes - LOWER_HEADERS_BYTES};
		}
	}
	return messages;
}

static void send_burst(struct load *load)
{
	for (uint32_t rank = 0; rank < load->port_count; rank++) {
		struct port *port = &load->ports[rank];
		unsigned int done = 0;
		unsigned int count = load->segments > 1 ? make_buffers(load, port) : make_frames(load, port);

		while (done < count) {
			int sent = sendmmsg(port->fd, port->messages + done, count - done, 0);

			if (sent < 0 && errno != EINTR && errno != ENOBUFS)
				fail(port->interface);
			done += sent > 0 ? (unsigned int)sent : 0;
		}
	}
	load->chunk += load->burst;
	load->sent += (uint64_t)load->burst * load->port_count;
}

/* Waits until at most limit packets are unanswered. Gives up on missing answers after a while. */
static void wait_for_answers(struct load *load, uint64_t limit)
{
	uint64_t last_change = now_ns();

	while (load->sent - load->lost - load->answered > limit) {
		uint64_t current = count_answers(load);

		if (current != load->answered) {
			last_change = now_ns();
		} else if (now_ns() - last_change > STALL_NS) {
			load->lost = load->sent - current;
			load->stalls++;
		}
		load->answered = current;
	}
}

static uint64_t burst_packets(const struct load *load)
{
	return (uint64_t)load->burst * load->port_count;
}

static void flow(struct load *load)
{
	send_burst(load);
	wait_for_answers(load, load->window - burst_packets(load));
}

static char process_state(pid_t pid)
{
	char path[64], state = 0;
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	file = fopen(path, "r");
	if (!file || fscanf(file, "%*d (%*[^)]) %c", &state) != 1)
		fail(path);
	fclose(file);
	return state;
}

static void drain(struct load *load, pid_t pid)
{
	uint64_t stalls = load->stalls, start;

	if (kill(pid, SIGSTOP))
		fail("SIGSTOP");
	while (process_state(pid) != 'T')
		usleep(10);
	for (uint64_t left = load->window; left >= burst_packets(load); left -= burst_packets(load))
		send_burst(load);
	start = now_ns();
	kill(pid, SIGCONT);
	wait_for_answers(load, 0);
	if (stalls == load->stalls && load->drains < MAX_DRAINS)
		load->drain_ns[load->drains++] = now_ns() - start;
}

static void print_result(const struct load *load, uint64_t elapsed_ns)
{
	printf("{\"sent\": %llu, \"answered\": %llu, \"seconds\": %.6f, \"stalls\": %llu, \"drain_packets\": %llu, "
	       "\"drain_ns\": [",
	       (unsigned long long)load->sent, (unsigned long long)load->answered, (double)elapsed_ns / 1e9,
	       (unsigned long long)load->stalls,
	       (unsigned long long)(load->window / burst_packets(load) * burst_packets(load)));
	for (uint32_t i = 0; i < load->drains; i++)
		printf("%s%llu", i ? ", " : "", (unsigned long long)load->drain_ns[i]);
	printf("]}\n");
}

int main(int argc, char **argv)
{
	static struct load load;
	uint64_t start, end;
	pid_t pid;

	if (argc < 8 || argc > 7 + MAX_PORTS) {
		fprintf(stderr, "load_generator LANES SLOTS WINDOW SECONDS PID SEGMENTS INTERFACE...\n");
		return 2;
	}
	load.lanes = (uint32_t)atoi(argv[1]);
	load.slots = (uint32_t)atoi(argv[2]);
	load.window = (uint32_t)atoi(argv[3]);
	pid = atoi(argv[5]);
	load.segments = (uint32_t)atoi(argv[6]);
	load.port_count = (uint32_t)argc - 7;
	load.frame_bytes = HEADERS_BYTES + 4 * load.lanes;
	load.burst = pid ? MAX_BURST : load.window / load.port_count / 2;
	if (load.burst > MAX_BURST)
		load.burst = MAX_BURST;
	if (!load.burst || !load.segments || load.slots < load.burst || load.window < burst_packets(&load)) {
		fprintf(stderr, "load_generator: SLOTS or WINDOW is too small\n");
		return 2;
	}
	for (uint32_t rank = 0; rank < load.port_count; rank++)
		open_port(&load, rank, argv[7 + rank]);
	load.counters_fd = open("/proc/self/net/dev", O_RDONLY);
	load.before = count_answers(&load);
	start = now_ns();
	end = start + (uint64_t)(atof(argv[4]) * 1e9);
	while (now_ns() < end) {
		if (pid)
			drain(&load, pid);
		else
			flow(&load);
	}
	print_result(&load, now_ns() - start);
	return 0;
}
