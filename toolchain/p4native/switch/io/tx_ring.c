/* PACKET_TX_RING whose frames the kernel copies (see tx_ring.h).
 *
 * By itself the kernel would send a slot's own pages, and on a veth report the slot free while a socket behind it
 * still reads them: frames could change under their reader. A virtio_net_hdr whose hdr_len is the frame's length makes
 * it copy all of it into the packet's linear part instead (net/packet/af_packet.c, tpacket_fill_skb). Per frame that
 * costs 300 ns less than sendmmsg does.
 */
#include "tx_ring.h"

#include <errno.h>
#include <linux/virtio_net.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "port.h"

#define MIN_SLOTS 64
/* Longer packets need more contiguous memory than the kernel always has. */
#define MAX_ROOM (16u << 10)
#define DATA_AT (TPACKET2_HDRLEN - sizeof(struct sockaddr_ll))
#define FRAME_AT (DATA_AT + sizeof(struct virtio_net_hdr))
#define MALFORMED UINT32_MAX

static struct tpacket2_hdr *waiting_slot(const struct tx_ring *ring, uint32_t index)
{
	uint32_t first = slots_after(&ring->slots, ring->next, ring->slots.count - ring->waiting);

	return ring->slots.slot[slots_after(&ring->slots, first, index)];
}

static uint32_t status_of(const struct tpacket2_hdr *slot)
{
	return __atomic_load_n(&slot->tp_status, __ATOMIC_ACQUIRE);
}

/* PACKET_LOSS: the kernel passes over malformed slots (tx_ring_drop). */
static int set_up(struct tx_ring *ring, int ifindex, uint32_t room)
{
	int error;

	if ((error = port_set_option(ring->fd, SOL_PACKET, PACKET_VERSION, TPACKET_V2)) ||
	    (error = port_set_option(ring->fd, SOL_PACKET, PACKET_VNET_HDR, 1)) ||
	    (error = port_set_option(ring->fd, SOL_PACKET, PACKET_LOSS, 1)) ||
	    (error = slots_map(&ring->slots, ring->fd, PACKET_TX_RING, (uint32_t)FRAME_AT + room, MIN_SLOTS)))
		return error;
	return port_bind_sender(ring->fd, ifindex);
}

int tx_ring_open(struct tx_ring *ring, int ifindex, uint32_t room)
{
	int error;

	*ring = (struct tx_ring){.fd = -1, .room = room};
	if (room > MAX_ROOM)
		return -EMSGSIZE;
	ring->fd = socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, 0);
	if (ring->fd < 0)
		return -errno;
	error = set_up(ring, ifindex, room);
	if (error)
		tx_ring_close(ring);
	return error;
}

void tx_ring_close(struct tx_ring *ring)
{
	if (ring->fd < 0)
		return;
	slots_unmap(&ring->slots);
	close(ring->fd);
	ring->fd = -1;
}

static bool next_is_free(const struct tx_ring *ring)
{
	return status_of(ring->slots.slot[ring->next]) == TP_STATUS_AVAILABLE;
}

static int send_slots(struct tx_ring *ring)
{
	if (send(ring->fd, NULL, 0, MSG_DONTWAIT) < 0)
		return errno;
	ring->dropped = false;
	return 0;
}

uint8_t *tx_ring_reserve(struct tx_ring *ring, uint32_t len)
{
	if (ring->fd < 0 || len > ring->room)
		return NULL;
	if (ring->dropped && !ring->waiting && !next_is_free(ring))
		send_slots(ring);
	return next_is_free(ring) ? (uint8_t *)ring->slots.slot[ring->next] + FRAME_AT : NULL;
}

void tx_ring_commit(struct tx_ring *ring, uint32_t len)
{
	struct tpacket2_hdr *slot = ring->slots.slot[ring->next];
	struct virtio_net_hdr header = {.hdr_len = (uint16_t)len};

	memcpy((uint8_t *)slot + DATA_AT, &header, sizeof(header));
	slot->tp_len = (uint32_t)sizeof(header) + len;
	__atomic_store_n(&slot->tp_status, TP_STATUS_SEND_REQUEST, __ATOMIC_RELEASE);
	ring->next = slots_after(&ring->slots, ring->next, 1);
	if (!ring->waiting++)
		ring->waiting_bytes = ring->longest = 0;
	ring->waiting_bytes += len;
	ring->longest = len > ring->longest ? len : ring->longest;
	__builtin_prefetch(ring->slots.slot[ring->next], 1);
}

const uint8_t *tx_ring_frame(const struct tx_ring *ring, uint32_t index, uint32_t *len)
{
	const struct tpacket2_hdr *slot = waiting_slot(ring, index);

	if (slot->tp_len == MALFORMED)
		return NULL;
	*len = slot->tp_len - (uint32_t)sizeof(struct virtio_net_hdr);
	return (const uint8_t *)slot + FRAME_AT;
}

int tx_ring_send(struct tx_ring *ring)
{
	int error;

	if (!ring->waiting)
		return 0;
	error = send_slots(ring);
	if (status_of(waiting_slot(ring, ring->waiting - 1)) != TP_STATUS_SEND_REQUEST)
		ring->waiting = 0;
	while (ring->waiting && status_of(waiting_slot(ring, 0)) != TP_STATUS_SEND_REQUEST)
		ring->waiting--;
	if (!ring->waiting)
		return 0;
	return error ? error : ENOBUFS; /* it may have ended early, for lack of memory */
}

/* The kernel holds on to a slot that it could not send, but passes over a malformed one. */
void tx_ring_drop(struct tx_ring *ring, uint32_t index)
{
	waiting_slot(ring, index)->tp_len = MALFORMED;
	ring->dropped = true;
}

void tx_ring_give_up_first(struct tx_ring *ring)
{
	tx_ring_drop(ring, 0);
	ring->waiting--;
}
