/* Gathering of equal datagrams for the way out (see buffers.h). */
#include "buffers.h"

#include <linux/if_ether.h>
#include <netinet/in.h>
#include <string.h>

#include "internet.h"

/* Linux 6.2; older headers lack the name */
#ifndef VIRTIO_NET_HDR_GSO_UDP_L4
#define VIRTIO_NET_HDR_GSO_UDP_L4 5
#endif

/* Offsets in a frame whose IPv4 header has no options. */
#define IP_AT ETH_HLEN
#define IP_BYTES 20
#define LENGTH_AT (IP_AT + 2)
#define ID_AT (IP_AT + 4)
#define FRAGMENT_AT (IP_AT + 6)
#define TTL_AT (IP_AT + 8)
#define PROTOCOL_AT (IP_AT + 9)
#define IP_CHECKSUM_AT (IP_AT + 10)
#define ADDRESSES_AT (IP_AT + 12)
#define UDP_AT (IP_AT + IP_BYTES)
#define UDP_LENGTH_AT (UDP_AT + 4)
#define UDP_CHECKSUM_AT (UDP_AT + 6)
#define PAYLOAD_AT (UDP_AT + 8)
#define IPV4_NO_OPTIONS 0x45
#define FRAGMENT_BITS 0x3fff /* more fragments, and their offset */
#define IP_LENGTH_MAX 65535u

static uint16_t pseudo_header_sum(const uint8_t *frame, uint32_t udp_bytes)
{
	return ones_sum(udp_bytes + IPPROTO_UDP, frame + ADDRESSES_AT, 8);
}

/* Returns whether the frame is exactly one whole datagram, with the header fields that a network card would write. */
static bool is_plain(const uint8_t *frame, uint32_t len)
{
	return len > PAYLOAD_AT && load16(frame + 2 * ETH_ALEN) == ETH_P_IP && frame[IP_AT] == IPV4_NO_OPTIONS &&
	       frame[PROTOCOL_AT] == IPPROTO_UDP && !(load16(frame + FRAGMENT_AT) & FRAGMENT_BITS) &&
	       load16(frame + LENGTH_AT) == len - IP_AT && load16(frame + UDP_LENGTH_AT) == len - UDP_AT &&
	       load16(frame + UDP_CHECKSUM_AT) && ones_sum(0, frame + IP_AT, IP_BYTES) == 0xffff &&
	       ones_sum(pseudo_header_sum(frame, len - UDP_AT), frame + UDP_AT, len - UDP_AT) == 0xffff;
}

/* Returns whether a plain frame is the index-th of the run that begins with `first`, whatever its length. */
static bool continues(const uint8_t *first, const uint8_t *frame, uint32_t index)
{
	return !memcmp(frame, first, LENGTH_AT) && load16(frame + ID_AT) == (uint16_t)(load16(first + ID_AT) + index) &&
	       !memcmp(frame + FRAGMENT_AT, first + FRAGMENT_AT, IP_CHECKSUM_AT - FRAGMENT_AT) &&
	       !memcmp(frame + ADDRESSES_AT, first + ADDRESSES_AT, UDP_LENGTH_AT - ADDRESSES_AT);
}

uint32_t buffer_run(const struct iovec *frames, uint32_t count)
{
	const uint8_t *first = frames->iov_base;
	size_t len = frames->iov_len, total = len - IP_AT;
	uint32_t run = 1;

	if (count < 2 || !is_plain(first, (uint32_t)len))
		return 1;
	while (run < count && run < BUFFER_PACKETS_MAX) {
		const struct iovec *next = &frames[run];
		const uint8_t *frame = next->iov_base;

		if (next->iov_len > len || !is_plain(frame, (uint32_t)next->iov_len) || !continues(first, frame, run))
			break;
		total += next->iov_len - PAYLOAD_AT;
		if (total > IP_LENGTH_MAX)
			break;
		run++;
		if (next->iov_len < len)
			break;
	}
	return run;
}

/* Turns the first frame's headers into those of the buffer. */
static void write_headers(uint8_t *first, uint32_t ip_bytes)
{
	uint32_t udp_bytes = ip_bytes - IP_BYTES;

	store16(first + LENGTH_AT, (uint16_t)ip_bytes);
	store16(first + IP_CHECKSUM_AT, 0);
	store16(first + IP_CHECKSUM_AT, (uint16_t)~ones_sum(0, first + IP_AT, IP_BYTES));
	store16(first + UDP_LENGTH_AT, (uint16_t)udp_bytes);
	store16(first + UDP_CHECKSUM_AT, pseudo_header_sum(first, udp_bytes));
}

static struct virtio_net_hdr segmented(size_t payload_bytes)
{
	return (struct virtio_net_hdr){
		.flags = VIRTIO_NET_HDR_F_NEEDS_CSUM,
		.gso_type = VIRTIO_NET_HDR_GSO_UDP_L4,
		.hdr_len = PAYLOAD_AT,
		.gso_size = (uint16_t)payload_bytes,
		.csum_start = UDP_AT,
		.csum_offset = UDP_CHECKSUM_AT - UDP_AT,
	};
}

/* Adds a message of the first `packets` of these frames. parts: room for one part more than that. */
static void add(struct buffers *buffers, const struct iovec *frames, uint32_t packets, struct iovec *parts)
{
	uint32_t number = buffers->count++;
	struct buffer *buffer = &buffers->of[number];
	size_t len = frames->iov_len, joined = len;

	*buffer = (struct buffer){.packets = packets, .bytes = (uint32_t)len};
	parts[1] = *frames;
	for (uint32_t i = 1; i < packets; i++) {
		buffer->bytes += (uint32_t)frames[i].iov_len;
		joined += frames[i].iov_len - PAYLOAD_AT;
		parts[1 + i].iov_base = (uint8_t *)frames[i].iov_base + PAYLOAD_AT;
		parts[1 + i].iov_len = frames[i].iov_len - PAYLOAD_AT;
	}
	buffers->headers[number] = (struct virtio_net_hdr){0};
	if (packets > 1) {
		write_headers(frames->iov_base, (uint32_t)joined - IP_AT);
		buffers->headers[number] = segmented(len - PAYLOAD_AT);
	}
	parts[0] = (struct iovec){.iov_base = &buffers->headers[number], .iov_len = sizeof(struct virtio_net_hdr)};
	buffers->messages[number].msg_hdr = (struct msghdr){.msg_iov = parts, .msg_iovlen = 1 + packets};
}

void buffers_make(struct buffers *buffers, struct iovec *frames, uint32_t count, int frame_max, bool with_headers)
{
	struct iovec *parts = buffers->parts;

	buffers->count = 0;
	for (uint32_t i = 0; i < count;) {
		bool may_join = with_headers && frame_max > 0 && frames[i].iov_len <= (size_t)frame_max;
		uint32_t run = may_join ? buffer_run(&frames[i], count - i) : 1;

		add(buffers, &frames[i], run, parts);
		if (!with_headers)
			buffers->messages[buffers->count - 1].msg_hdr = (struct msghdr){.msg_iov = parts + 1, .msg_iovlen = 1};
		parts += 1 + run;
		i += run;
	}
}
