/* Checksums and segmentation in software (see offload.h). */
#include "offload.h"

#include <arpa/inet.h>
#include <linux/if_ether.h>
#include <linux/virtio_net.h>
#include <netinet/in.h>
#include <string.h>

#include "internet.h"

/* Linux 6.2; older headers lack the name */
#ifndef VIRTIO_NET_HDR_GSO_UDP_L4
#define VIRTIO_NET_HDR_GSO_UDP_L4 5
#endif

#define IPV4_BYTES 20
#define IPV6_BYTES 40
#define UDP_BYTES 8
#define TCP_BYTES 20
#define TCP_CHECKSUM_AT 16
#define TCP_FLAGS_AT 13
#define TCP_FIN_PSH 0x09
#define TCP_CWR 0x80
#define UDP_CHECKSUM_AT 6
/* Ethernet, two VLAN tags, IPv6 with its extensions, TCP with its options */
#define HEADERS_MAX 256

/* The offsets of headers in a frame that is to be cut. */
struct layout {
	uint32_t l3, l4, payload;
	bool ipv6, tcp;
};

int offload_complete_checksum(struct frame *frame)
{
	uint32_t start = frame->csum_start;
	uint32_t field = start + frame->csum_offset;
	uint16_t sum;

	if (field + 2 > frame->len)
		return -1;
	sum = (uint16_t)~ones_sum(0, frame->data + start, frame->len - start);
	/* RFC 768: a UDP checksum of zero would mean that there is none. */
	if (!sum && frame->csum_offset == UDP_CHECKSUM_AT)
		sum = 0xffff;
	store16(frame->data + field, sum);
	return 0;
}

static uint32_t network_offset(const struct frame *frame, uint16_t *ethertype)
{
	uint32_t at = 2 * ETH_ALEN;

	*ethertype = 0;
	while (at + 2 <= frame->len) {
		*ethertype = load16(frame->data + at);
		at += 2;
		if (*ethertype != ETH_P_8021Q && *ethertype != ETH_P_8021AD)
			break;
		at += 2;
	}
	return at;
}

/* Returns whether the network header ends where the transport header begins, names its protocol, and agrees with the
 * frame's length. */
static bool network_fits(const struct frame *frame, const struct layout *layout)
{
	const uint8_t *header = frame->data + layout->l3;
	uint32_t len = frame->len - layout->l3;
	uint8_t protocol = layout->tcp ? IPPROTO_TCP : IPPROTO_UDP;

	if (layout->ipv6)
		return layout->l4 >= layout->l3 + IPV6_BYTES && load16(header + 4) == len - IPV6_BYTES;
	return (uint32_t)(header[0] & 15) * 4 == layout->l4 - layout->l3 && load16(header + 2) == len &&
	       header[9] == protocol;
}

static int find_layout(const struct frame *frame, struct layout *layout)
{
	uint16_t ethertype;
	uint8_t kind = frame->gso_type & ~VIRTIO_NET_HDR_GSO_ECN;
	uint32_t header;

	layout->l3 = network_offset(frame, &ethertype);
	layout->l4 = frame->csum_start;
	layout->ipv6 = ethertype == ETH_P_IPV6;
	layout->tcp = kind == VIRTIO_NET_HDR_GSO_TCPV4 || kind == VIRTIO_NET_HDR_GSO_TCPV6;
	if ((!layout->tcp && kind != VIRTIO_NET_HDR_GSO_UDP_L4) || (!layout->ipv6 && ethertype != ETH_P_IP) ||
	    !(frame->flags & VIRTIO_NET_HDR_F_NEEDS_CSUM))
		return -1;
	if (layout->l4 < layout->l3 + (layout->ipv6 ? IPV6_BYTES : IPV4_BYTES) ||
	    layout->l4 + TCP_BYTES > frame->len + (layout->tcp ? 0 : TCP_BYTES - UDP_BYTES) ||
	    frame->csum_offset != (layout->tcp ? TCP_CHECKSUM_AT : UDP_CHECKSUM_AT) || !network_fits(frame, layout))
		return -1;
	header = layout->tcp ? (uint32_t)(frame->data[layout->l4 + 12] >> 4) * 4 : UDP_BYTES;
	layout->payload = layout->l4 + header;
	return (layout->tcp && header < TCP_BYTES) || layout->payload >= frame->len ? -1 : 0;
}

static uint16_t pseudo_header_sum(const uint8_t *data, const struct layout *layout, uint32_t l4_len)
{
	const uint8_t *addresses = data + layout->l3 + (layout->ipv6 ? 8 : 12);
	uint32_t sum = (l4_len >> 16) + (l4_len & 0xffff) + (layout->tcp ? IPPROTO_TCP : IPPROTO_UDP);

	return ones_sum(sum, addresses, layout->ipv6 ? 32 : 8);
}

static void finish_network_header(uint8_t *data, const struct layout *layout, uint32_t len, uint16_t index)
{
	uint8_t *header = data + layout->l3;
	uint32_t header_len = layout->l4 - layout->l3;

	if (layout->ipv6) {
		store16(header + 4, (uint16_t)(len - layout->l3 - IPV6_BYTES));
		return;
	}
	store16(header + 2, (uint16_t)(len - layout->l3));
	store16(header + 4, (uint16_t)(load16(header + 4) + index));
	store16(header + 10, 0);
	store16(header + 10, (uint16_t)~ones_sum(0, header, header_len));
}

/* Writes the checksum of a packet whose payload's sum is known. */
static void write_checksum(uint8_t *data, const struct layout *layout, uint32_t len, const struct known_sum *payload)
{
	uint8_t *field = data + layout->l4 + (layout->tcp ? TCP_CHECKSUM_AT : UDP_CHECKSUM_AT);
	uint16_t words = (uint16_t)payload->sum, sum;

	store16(field, pseudo_header_sum(data, layout, len - layout->l4));
	sum = (uint16_t)~ones_sum(load16((const uint8_t *)&words), data + layout->l4, layout->payload - layout->l4);
	store16(field, sum || layout->tcp ? sum : 0xffff);
}

static void finish_transport_header(uint8_t *data, const struct layout *layout, uint32_t len, uint32_t offset,
				    bool first, bool last)
{
	uint8_t *header = data + layout->l4;

	if (layout->tcp) {
		store32(header + 4, load32(header + 4) + offset);
		if (!last)
			header[TCP_FLAGS_AT] &= (uint8_t)~TCP_FIN_PSH;
		if (!first)
			header[TCP_FLAGS_AT] &= (uint8_t)~TCP_CWR;
	} else {
		store16(header + 4, (uint16_t)(len - layout->l4));
	}
}

int offload_segment(struct frame *frame, offload_emit *emit, void *context)
{
	uint8_t headers[HEADERS_MAX];
	struct layout layout;
	uint32_t payload, offset = 0;
	uint16_t index = 0;

	if (!frame->gso_size || find_layout(frame, &layout) || layout.payload > sizeof(headers))
		return -1;
	payload = frame->len - layout.payload;
	if (payload > (uint32_t)frame->gso_size * OFFLOAD_PACKETS_MAX)
		return -1;
	memcpy(headers, frame->data, layout.payload);
	while (offset < payload) {
		uint32_t part = payload - offset < frame->gso_size ? payload - offset : frame->gso_size;
		uint32_t len = layout.payload + part;
		uint8_t *packet = frame->data + offset;
		struct known_sum known = {.bytes = packet + layout.payload, .len = part};

		memcpy(packet, headers, layout.payload);
		finish_network_header(packet, &layout, len, index);
		finish_transport_header(packet, &layout, len, offset, !offset, offset + part == payload);
		known.sum = (uint32_t)csum_words(known.bytes, part);
		write_checksum(packet, &layout, len, &known);
		emit(context, packet, len, &known);
		offset += part;
		index++;
	}
	return index;
}
