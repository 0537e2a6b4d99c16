#include <arpa/inet.h>
#include <string.h>

#include "framing.h"

#define ONES 0xFFFFu
#define IP_START 14
#define UDP_START 34
#define IP_BYTES 20
#define UDP_BYTES 8
#define VERSION_IHL 0x45
#define DONT_FRAGMENT_BYTE 0x40
#define TTL 64
#define UDP 17

/* Returns the ones' complement sum of big-endian words, modulo ONES (RFC 1071). An odd last byte is the upper half of a
 * word. */
static uint32_t word_sum(const uint8_t *data, uint32_t bytes)
{
	uint64_t sum = 0;
	uint16_t half = 0;
	uint32_t at = 0;

	for (; at + 4 <= bytes; at += 4) {
		uint32_t word;

		memcpy(&word, data + at, sizeof(word));
		sum += word;
	}
	for (; at < bytes; at += 2) {
		half = 0;
		memcpy(&half, data + at, bytes - at < 2 ? 1 : 2);
		sum += half;
	}
	while (sum >> 16)
		sum = (sum & ONES) + (sum >> 16);
	return ntohs((uint16_t)sum) % ONES;
}

static void put16(uint8_t *at, uint32_t value)
{
	at[0] = (uint8_t)(value >> 8);
	at[1] = (uint8_t)value;
}

static uint32_t get16(const uint8_t *at)
{
	return (uint32_t)at[0] << 8 | at[1];
}

/* Returns the sum of the pseudo header. The IPv4 header has both addresses in the right order. */
static uint32_t pseudo_sum(const uint8_t *frame, uint32_t udp_bytes)
{
	return word_sum(frame + 26, 8) + UDP + udp_bytes;
}

static void put_ipv4(const struct framing *framing, uint8_t *ip, uint32_t total)
{
	memset(ip, 0, IP_BYTES);
	ip[0] = VERSION_IHL;
	put16(ip + 2, total);
	ip[6] = DONT_FRAGMENT_BYTE;
	ip[8] = TTL;
	ip[9] = UDP;
	memcpy(ip + 12, framing->own.ip, 4);
	memcpy(ip + 16, framing->other.ip, 4);
	put16(ip + 10, (ONES - word_sum(ip, IP_BYTES)) % ONES); /* unlike UDP's, it may be zero */
}

void framing_frame(const struct framing *framing, const uint8_t *payload, uint32_t bytes, uint8_t *frame)
{
	uint32_t udp_bytes = UDP_BYTES + bytes;
	uint8_t *udp = frame + UDP_START;

	memcpy(frame, framing->other.mac, 6);
	memcpy(frame + 6, framing->own.mac, 6);
	put16(frame + 12, 0x0800);
	put_ipv4(framing, frame + IP_START, IP_BYTES + udp_bytes);
	put16(udp, framing->own.port);
	put16(udp + 2, framing->other.port);
	put16(udp + 4, udp_bytes);
	put16(udp + 6, 0);
	memcpy(udp + UDP_BYTES, payload, bytes);
	put16(udp + 6, ONES - (pseudo_sum(frame, udp_bytes) + word_sum(udp, udp_bytes)) % ONES);
}

int framing_is_local(const struct framing *framing)
{
	return !memcmp(framing->own.ip, framing->other.ip, sizeof(framing->own.ip));
}

static int is_addressed(const struct framing *framing, const uint8_t *frame)
{
	return !memcmp(frame, framing->own.mac, 6) && get16(frame + 12) == 0x0800 &&
	       !memcmp(frame + 26, framing->other.ip, 4) && !memcmp(frame + 30, framing->own.ip, 4) &&
	       get16(frame + 34) == framing->other.port && get16(frame + 36) == framing->own.port;
}

static int is_plain_udp(const uint8_t *frame, uint32_t bytes)
{
	uint32_t udp_bytes = get16(frame + 38);

	return frame[14] == VERSION_IHL && !(frame[20] & ~DONT_FRAGMENT_BYTE) && !frame[21] && frame[23] == UDP &&
	       udp_bytes >= UDP_BYTES && udp_bytes <= bytes - UDP_START && get16(frame + 16) == udp_bytes + IP_BYTES;
}

/* RFC 768: a checksum of zero says that the sender computed none. */
static int has_right_sums(const uint8_t *frame, uint32_t udp_bytes)
{
	if (word_sum(frame + IP_START, IP_BYTES))
		return 0;
	return !get16(frame + 40) || !((pseudo_sum(frame, udp_bytes) + word_sum(frame + UDP_START, udp_bytes)) % ONES);
}

const uint8_t *framing_payload(const struct framing *framing, const uint8_t *frame, uint32_t bytes,
			       uint32_t *payload_bytes)
{
	if (bytes < LOWER_HEADER_BYTES || !is_addressed(framing, frame) || !is_plain_udp(frame, bytes))
		return NULL;
	if (!has_right_sums(frame, get16(frame + 38)))
		return NULL;
	*payload_bytes = get16(frame + 38) - UDP_BYTES;
	return frame + LOWER_HEADER_BYTES;
}
