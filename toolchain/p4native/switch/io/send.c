/* Sends a port's frames: by the ring if possible, otherwise by sendmmsg (see port.h).
 *
 * The ring is full when frames wait in the interface's queueing discipline, which must not make the queue shorter than
 * the discipline says: sendmmsg takes over then. Queueing disciplines apply to both (no PACKET_QDISC_BYPASS).
 */
#include <errno.h>
#include <linux/if_ether.h>
#include <string.h>
#include <time.h>

#include "buffers.h"
#include "port.h"

/* Frames leave in the order of their commits, so they wait in one of ring and queue only. */
static uint8_t *reserve_in_ring(struct port *port, uint32_t max_len)
{
	uint8_t *frame = tx_ring_reserve(&port->tx_ring, max_len);

	if (port->tx.count && frame)
		port_flush(port);
	if (port->tx_ring.waiting && !frame) {
		port_flush(port);
		frame = tx_ring_reserve(&port->tx_ring, max_len);
	}
	return frame;
}

uint8_t *port_reserve(struct port *port, uint32_t max_len, bool in_run)
{
	struct tx_queue *tx = &port->tx;
	bool gather = in_run && port->gathers;
	uint8_t *frame = gather ? NULL : reserve_in_ring(port, max_len);

	if (gather && port->tx_ring.waiting)
		port_flush(port);
	port->in_ring = frame;
	if (frame)
		return frame;
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
	/* No interface takes an empty frame, and at the CPU port it would mean that the switch has ended. */
	if (!len) {
		port->stats.tx_errors++;
		return;
	}
	if (port->in_ring && len > ETH_HLEN) {
		tx_ring_commit(&port->tx_ring, len);
		return;
	}
	if (port->in_ring) {
		port_flush(port);
		memcpy(tx->arena, port->in_ring, len);
	}
	tx->iov[tx->count].iov_base = tx->arena + tx->used;
	tx->iov[tx->count].iov_len = len;
	tx->count++;
	tx->used += (len + 63) & ~63u;
	if (tx->used > TX_ARENA_BYTES)
		tx->used = TX_ARENA_BYTES;
}

static void count_send_error(struct port *port, int error, uint64_t packets)
{
	if (error == ENOBUFS || error == EAGAIN || error == ENOMEM)
		port->stats.tx_drops += packets;
	else if (error == EMSGSIZE)
		port->stats.tx_oversize += packets;
	else
		port->stats.tx_errors += packets;
}

/* sendmmsg ends early at a message that failed and does not say why; trying it again could send a frame that the
 * interface's queue has already counted as dropped. */
static int unnamed_error(const struct port *port, const struct buffer *buffer)
{
	int mtu = port_mtu(port);

	return mtu > 0 && buffer->packets == 1 && buffer->bytes > (size_t)mtu + ETH_HLEN ? EMSGSIZE : ENOBUFS;
}

/* Returns whether the port is an interface and not the CPU port. */
static bool is_interface(const struct port *port)
{
	return port->interface[0];
}

static void send_queue(struct port *port)
{
	struct buffers *buffers = port->tx.buffers;
	uint32_t done = 0;

	buffers_make(buffers, port->tx.iov, port->tx.count, port->gathers ? port_mtu(port) + ETH_HLEN : 0,
		     is_interface(port));
	while (done < buffers->count) {
		int sent = sendmmsg(port->tx_fd, buffers->messages + done, buffers->count - done, MSG_DONTWAIT);

		if (sent < 0 && errno == EINTR)
			continue;
		if (sent < 0)
			count_send_error(port, errno, buffers->of[done].packets);
		for (int i = 0; i < sent; i++, done++) {
			port->stats.tx_packets += buffers->of[done].packets;
			port->stats.tx_bytes += buffers->of[done].bytes;
		}
		if (sent > 0 && done < buffers->count) {
			const struct buffer *failed = &buffers->of[done];

			count_send_error(port, unnamed_error(port, failed), failed->packets);
		}
		done++;
	}
}

/* Returns whether sendmmsg would refuse the frame's length: the kernel does not check it for frames in the ring. */
static bool too_long(const uint8_t *frame, uint32_t len, int mtu)
{
	bool tagged = frame[MACS_BYTES] == ETH_P_8021Q >> 8 && frame[MACS_BYTES + 1] == (ETH_P_8021Q & 0xff);

	return mtu > 0 && len > (uint32_t)mtu + ETH_HLEN + (tagged ? VLAN_TAG_BYTES : 0);
}

static void drop_too_long(struct port *port, uint64_t *packets, uint64_t *bytes)
{
	struct tx_ring *ring = &port->tx_ring;
	int mtu = port_mtu(port);
	uint32_t len;

	if (mtu > 0 && ring->longest <= (uint32_t)mtu + ETH_HLEN)
		return;
	for (uint32_t i = 0; i < ring->waiting; i++) {
		const uint8_t *frame = tx_ring_frame(ring, i, &len);

		if (!too_long(frame, len, mtu))
			continue;
		port->stats.tx_oversize++;
		tx_ring_drop(ring, i);
		--*packets;
		*bytes -= len;
	}
}

static void send_ring(struct port *port)
{
	struct tx_ring *ring = &port->tx_ring;
	uint64_t packets = ring->waiting, bytes = ring->waiting_bytes;
	uint32_t len;
	int error;

	drop_too_long(port, &packets, &bytes);
	while ((error = tx_ring_send(ring))) {
		if (tx_ring_frame(ring, 0, &len)) {
			count_send_error(port, error, 1);
			packets--;
			bytes -= len;
		}
		tx_ring_give_up_first(ring);
	}
	port->stats.tx_packets += packets;
	port->stats.tx_bytes += bytes;
}

static void capture(struct port *port)
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
	for (uint32_t i = 0; i < port->tx_ring.waiting; i++) {
		uint32_t len;
		const uint8_t *data = tx_ring_frame(&port->tx_ring, i, &len);

		if (pcap_write(port->pcap_out, now_ns, data, len))
			port->pcap_errors++;
	}
}

void port_flush(struct port *port)
{
	if (!port->tx.count && !port->tx_ring.waiting)
		return;
	if (port->pcap_out)
		capture(port);
	if (port->tx_ring.waiting)
		send_ring(port);
	send_queue(port);
	port->tx.count = 0;
	port->tx.used = 0;
}
