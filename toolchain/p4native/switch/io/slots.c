/* Rings of packet sockets (see slots.h). */
#include "slots.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/socket.h>

#define BLOCK_BYTES (256u << 10)

static int map_memory(struct slots *slots, int fd, int kind, struct tpacket_req *request)
{
	void *memory;

	if (setsockopt(fd, SOL_PACKET, kind, request, sizeof(*request)))
		return -errno;
	slots->bytes = (size_t)request->tp_block_nr * BLOCK_BYTES;
	memory = mmap(NULL, slots->bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, fd, 0);
	if (memory == MAP_FAILED)
		return -errno;
	slots->memory = memory;
	return 0;
}

int slots_map(struct slots *slots, int fd, int kind, uint32_t slot_bytes, uint32_t count)
{
	uint32_t size = (slot_bytes + 63) & ~63u, per_block = BLOCK_BYTES / size;
	struct tpacket_req request = {
		.tp_block_size = BLOCK_BYTES,
		.tp_block_nr = (count + per_block - 1) / per_block,
		.tp_frame_size = size,
	};
	int error;

	request.tp_frame_nr = request.tp_block_nr * per_block;
	error = map_memory(slots, fd, kind, &request);
	if (error)
		return error;
	slots->count = request.tp_frame_nr;
	slots->slot = calloc(slots->count, sizeof(*slots->slot));
	if (!slots->slot)
		return -ENOMEM;
	for (uint32_t i = 0; i < slots->count; i++) {
		uint8_t *block = slots->memory + (size_t)(i / per_block) * BLOCK_BYTES;

		slots->slot[i] = (struct tpacket2_hdr *)(block + (size_t)(i % per_block) * size);
	}
	return 0;
}

void slots_unmap(struct slots *slots)
{
	if (slots->memory)
		munmap(slots->memory, slots->bytes);
	free(slots->slot);
	*slots = (struct slots){0};
}
