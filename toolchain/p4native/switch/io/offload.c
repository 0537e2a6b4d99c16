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
/* Ethernet, two VLAN tags, IPv6 with its extensions, TCP with its options; or the same in a tunnel */
#define HEADERS_MAX 256

/* GRE's flags for a checksum and for sequence numbers, which a copy of the header would get wrong */
#define GRE_CHECKSUM_SEQUENCE 0x90

/* The headers that encapsulate the packet in a frame that is to be cut. */
struct tunnel {
	uint32_t l3, l4; /* l4: where the header behind the outer network header begins, 0 without a tunnel */
	bool ipv6, udp;
};

/* The offsets of headers in a frame that is to be cut. In a tunnel, those of the inner packet. */
struct layout {
	uint32_t l3, l4, payload;
	bool ipv6, tcp;
	struct tunnel tunnel;
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

static uint32_t network_header_bytes(const uint8_t *header, bool ipv6)
{
	return ipv6 ? IPV6_BYTES : (uint32_t)(header[0] & 15) * 4;
}

static uint8_t network_protocol(const uint8_t *header, bool ipv6)
{
	return header[ipv6 ? 6 : 9];
}

/* Returns whether the network header at an offset says that its packet ends with the frame. */
static bool ends_with_frame(const struct frame *frame, uint32_t l3, bool ipv6)
{
	const uint8_t *header = frame->data + l3;

	return load16(header + (ipv6 ? 4 : 2)) == frame->len - l3 - (ipv6 ? IPV6_BYTES : 0);
}

/* Returns whether an IPv6 header and its extension headers lead to the transport header. */
static bool ipv6_leads_to(const uint8_t *data, uint32_t l3, uint32_t l4, uint8_t protocol)
{
	uint8_t next = network_protocol(data + l3, true);
	uint32_t at = l3 + IPV6_BYTES;

	while (at < l4 && (next == IPPROTO_HOPOPTS || next == IPPROTO_ROUTING || next == IPPROTO_DSTOPTS)) {
		next = data[at];
		at += (data[at + 1] + 1u) * 8;
	}
	return at == l4 && next == protocol;
}

/* Returns whether the network header ends where the transport header begins, names its protocol, and agrees with the
 * frame's length. */
static bool network_fits(const struct frame *frame, const struct layout *layout)
{
	const uint8_t *header = frame->data + layout->l3;
	uint8_t protocol = layout->tcp ? IPPROTO_TCP : IPPROTO_UDP;

	if (!ends_with_frame(frame, layout->l3, layout->ipv6))
		return false;
	if (layout->ipv6)
		return ipv6_leads_to(frame->data, layout->l3, layout->l4, protocol);
	return network_header_bytes(header, false) == layout->l4 - layout->l3 &&
	       network_protocol(header, false) == protocol;
}

/* Finds the inner network header, which ends at the transport header. The tunnel's own header is in front of it. */
static bool find_inner_network(const struct frame *frame, struct layout *layout)
{
	layout->ipv6 = false;
	for (uint32_t bytes = IPV4_BYTES; bytes <= 60 && layout->tunnel.l4 + bytes <= layout->l4; bytes += 4) {
		layout->l3 = layout->l4 - bytes;
		if (frame->data[layout->l3] >> 4 == 4 && network_fits(frame, layout))
			return true;
	}
	if (layout->tunnel.l4 + IPV6_BYTES > layout->l4)
		return false;
	layout->ipv6 = true;
	layout->l3 = layout->l4 - IPV6_BYTES;
	return frame->data[layout->l3] >> 4 == 6 && network_fits(frame, layout);
}

/* Makes the layout that of the inner packet of a tunnel: VXLAN and others over UDP, GRE, and IP in IP. The kernel's
 * description of such a frame is that of a frame without a tunnel, but csum_start is the inner transport header. */
static bool enter_tunnel(const struct frame *frame, struct layout *layout)
{
	const uint8_t *header = frame->data + layout->l3;
	uint8_t protocol = network_protocol(header, layout->ipv6);
	uint32_t l4 = layout->l3 + network_header_bytes(header, layout->ipv6);
	bool udp = protocol == IPPROTO_UDP, gre = protocol == IPPROTO_GRE;

	if (!udp && !gre && protocol != IPPROTO_IPIP && protocol != IPPROTO_IPV6)
		return false;
	if (l4 + IPV4_BYTES > layout->l4 || !ends_with_frame(frame, layout->l3, layout->ipv6) ||
	    (udp && load16(frame->data + l4 + 4) != frame->len - l4) ||
	    (gre && frame->data[l4] & GRE_CHECKSUM_SEQUENCE))
		return false;
	layout->tunnel = (struct tunnel){.l3 = layout->l3, .l4 = l4, .ipv6 = layout->ipv6, .udp = udp};
	return find_inner_network(frame, layout);
}

static int find_layout(const struct frame *frame, struct layout *layout)
{
	uint16_t ethertype;
	uint8_t kind = frame->gso_type & ~VIRTIO_NET_HDR_GSO_ECN;
	uint32_t header;

	*layout = (struct layout){.l3 = network_offset(frame, &ethertype), .l4 = frame->csum_start};
	layout->ipv6 = ethertype == ETH_P_IPV6;
	layout->tcp = kind == VIRTIO_NET_HDR_GSO_TCPV4 || kind == VIRTIO_NET_HDR_GSO_TCPV6;
	if ((!layout->tcp && kind != VIRTIO_NET_HDR_GSO_UDP_L4) || (!layout->ipv6 && ethertype != ETH_P_IP) ||
	    !(frame->flags & VIRTIO_NET_HDR_F_NEEDS_CSUM))
		return -1;
	if (layout->l4 < layout->l3 + (layout->ipv6 ? IPV6_BYTES : IPV4_BYTES) ||
	    layout->l4 + TCP_BYTES > frame->len + (layout->tcp ? 0 : TCP_BYTES - UDP_BYTES) ||
	    frame->csum_offset != (layout->tcp ? TCP_CHECKSUM_AT : UDP_CHECKSUM_AT))
		return -1;
	if (!network_fits(frame, layout) && !enter_tunnel(frame, layout))
		return -1;
	header = layout->tcp ? (uint32_t)(frame->data[layout->l4 + 12] >> 4) * 4 : UDP_BYTES;
	layout->payload = layout->l4 + header;
	return (layout->tcp && header < TCP_BYTES) || layout->payload >= frame->len ? -1 : 0;
}

static uint16_t pseudo_header_sum(const uint8_t *network, bool ipv6, uint8_t protocol, uint32_t l4_len)
{
	uint32_t sum = (l4_len >> 16) + (l4_len & 0xffff) + protocol;

	return ones_sum(sum, network + (ipv6 ? 8 : 12), ipv6 ? 32 : 8);
}

/* len: of the packet, from this header on. */
static void finish_network_header(uint8_t *header, bool ipv6, uint32_t len, uint16_t index)
{
	uint32_t header_len = network_header_bytes(header, ipv6);

	if (ipv6) {
		store16(header + 4, (uint16_t)(len - IPV6_BYTES));
		return;
	}
	store16(header + 2, (uint16_t)len);
	store16(header + 4, (uint16_t)(load16(header + 4) + index));
	store16(header + 10, 0);
	store16(header + 10, (uint16_t)~ones_sum(0, header, header_len));
}

/* Writes the checksum of a packet whose payload's sum is known. */
static void write_checksum(uint8_t *data, const struct layout *layout, uint32_t len, const struct known_sum *payload)
{
	uint8_t *field = data + layout->l4 + (layout->tcp ? TCP_CHECKSUM_AT : UDP_CHECKSUM_AT);
	uint16_t words = (uint16_t)payload->sum, sum;

	store16(field, pseudo_header_sum(data + layout->l3, layout->ipv6, layout->tcp ? IPPROTO_TCP : IPPROTO_UDP,
					 len - layout->l4));
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

/* Completes the headers around a packet that is complete itself. A UDP checksum of 0 means that there is none. */
static void finish_tunnel(uint8_t *data, const struct tunnel *tunnel, uint32_t len, uint16_t index)
{
	uint8_t *network = data + tunnel->l3, *udp = data + tunnel->l4;
	uint32_t udp_len = len - tunnel->l4;
	uint16_t sum;

	finish_network_header(network, tunnel->ipv6, len - tunnel->l3, index);
	if (!tunnel->udp)
		return;
	store16(udp + 4, (uint16_t)udp_len);
	if (!load16(udp + UDP_CHECKSUM_AT))
		return;
	store16(udp + UDP_CHECKSUM_AT, pseudo_header_sum(network, tunnel->ipv6, IPPROTO_UDP, udp_len));
	sum = (uint16_t)~ones_sum(0, udp, udp_len);
	store16(udp + UDP_CHECKSUM_AT, sum ? sum : 0xffff);
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
		finish_network_header(packet + layout.l3, layout.ipv6, len - layout.l3, index);
		finish_transport_header(packet, &layout, len, offset, !offset, offset + part == payload);
		known.sum = (uint32_t)csum_words(known.bytes, part);
		write_checksum(packet, &layout, len, &known);
		if (layout.tunnel.l4)
			finish_tunnel(packet, &layout.tunnel, len, index);
		emit(context, packet, len, &known);
		offset += part;
		index++;
	}
	return index;
}
