/* A program written by hand, so that the packet loop can be tested without the translator.
 *
 * By the destination address: a group address is copied to all of ports 1..3 but the one of entry; a last
 * byte of 0x63 asks for port 99, of 0x64 for a frame of no bytes; else port 1 and 2 swap, any other port answers on itself.
 */
#include "../../../p4native/switch/runtime/pipeline.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

struct pipeline {
	pthread_mutex_t mutex;
	uint64_t seen;
};

struct pipeline *pl_new(uint64_t seed)
{
	struct pipeline *p = calloc(1, sizeof(*p));

	p->seen = seed;
	pthread_mutex_init(&p->mutex, NULL);
	return p;
}

void pl_free(struct pipeline *p)
{
	free(p);
}

void pl_lock(struct pipeline *p)
{
	pthread_mutex_lock(&p->mutex);
}

void pl_unlock(struct pipeline *p)
{
	pthread_mutex_unlock(&p->mutex);
}

static void copy_to(const struct pl_sink *sink, uint16_t port, const uint8_t *frame, uint32_t len)
{
	uint8_t *room = sink->reserve(sink->context, port, len);

	if (!room)
		return;
	memcpy(room, frame, len);
	sink->commit(sink->context, port, len);
}

void pl_know_sum(struct pipeline *p, const uint8_t *bytes, uint32_t len, uint32_t sum)
{
	(void)p, (void)bytes, (void)len, (void)sum;
}

void pl_process(struct pipeline *p, uint16_t port, const uint8_t *frame, uint32_t len, uint64_t now_us,
		const struct pl_sink *sink)
{
	(void)now_us;
	p->seen++;
	if (frame[0] & 1) {
		for (uint16_t out = 1; out <= 3; out++)
			if (out != port)
				copy_to(sink, out, frame, len);
		return;
	}
	if (frame[5] == 0x64)
		len = 0;
	if (frame[5] == 0x63)
		port = 99;
	else if (port == 1 || port == 2)
		port = 3 - port;
	copy_to(sink, port, frame, len);
}

uint32_t pl_drops(struct pipeline *p, uint64_t *counts, uint32_t room)
{
	if (room)
		counts[0] = p->seen;
	return 1;
}
