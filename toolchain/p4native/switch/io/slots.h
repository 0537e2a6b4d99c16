/* The slots of a packet socket's ring (TPACKET_V2), which the kernel wants in blocks. */
#ifndef P4NATIVE_SLOTS_H
#define P4NATIVE_SLOTS_H

#include <linux/if_packet.h>
#include <stddef.h>
#include <stdint.h>

struct slots {
	struct tpacket2_hdr **slot;
	uint32_t count;
	uint8_t *memory;
	size_t bytes;
};

/* Maps at least count slots of slot_bytes for the socket; kind: PACKET_RX_RING or PACKET_TX_RING. *slots must be
 * zeroed. Returns 0 or a negative errno; slots_unmap has to follow in both cases. */
int slots_map(struct slots *slots, int fd, int kind, uint32_t slot_bytes, uint32_t count);
void slots_unmap(struct slots *slots);

static inline uint32_t slots_after(const struct slots *slots, uint32_t index, uint32_t steps)
{
	index += steps;
	return index < slots->count ? index : index - slots->count;
}

#endif
