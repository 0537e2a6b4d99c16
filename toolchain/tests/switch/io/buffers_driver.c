/* Runs p4native/switch/io/buffers.c on frames, and offload.c on what comes of them, under the sanitizers.
 *
 * stdin: the longest frame that may be joined, one line; then LENGTH, one line, and LENGTH bytes, of each frame.
 * stdout: for each buffer a line "buffer" and the number of bytes it counts for, then the packets that are cut from it,
 * each as a line of hexadecimal.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../../p4native/switch/io/buffers.h"
#include "../../../p4native/switch/io/offload.h"

static void print_packet(void *context, uint8_t *data, uint32_t len, const struct known_sum *known)
{
	(void)context, (void)known;
	for (uint32_t i = 0; i < len; i++)
		printf("%02x", data[i]);
	putchar('\n');
}

static uint8_t *joined(const struct msghdr *message, uint32_t *len)
{
	uint8_t *data;
	uint32_t at = 0;

	*len = 0;
	for (size_t i = 1; i < message->msg_iovlen; i++)
		*len += (uint32_t)message->msg_iov[i].iov_len;
	data = malloc(*len);
	for (size_t i = 1; i < message->msg_iovlen; i++) {
		memcpy(data + at, message->msg_iov[i].iov_base, message->msg_iov[i].iov_len);
		at += (uint32_t)message->msg_iov[i].iov_len;
	}
	return data;
}

static int cut(const struct buffers *buffers, uint32_t number)
{
	const struct virtio_net_hdr *header = &buffers->headers[number];
	struct frame frame = {
		.csum_start = header->csum_start,
		.csum_offset = header->csum_offset,
		.gso_size = header->gso_size,
		.flags = header->flags,
		.gso_type = header->gso_type,
	};
	int packets = 1;

	frame.data = joined(&buffers->messages[number].msg_hdr, &frame.len);
	printf("buffer %u\n", buffers->of[number].bytes);
	if (frame.gso_type)
		packets = offload_segment(&frame, print_packet, NULL);
	else
		print_packet(NULL, frame.data, frame.len, NULL);
	free(frame.data);
	return packets == (int)buffers->of[number].packets ? 0 : 1;
}

int main(void)
{
	struct buffers *buffers = malloc(sizeof(*buffers));
	struct iovec frames[TX_BATCH];
	uint32_t count = 0;
	unsigned int length;
	int frame_max, wrong = 0;

	if (scanf("%d", &frame_max) != 1)
		return 1;
	while (count < TX_BATCH && scanf("%u", &length) == 1) {
		frames[count].iov_base = malloc(length);
		frames[count].iov_len = length;
		getchar();
		if (fread(frames[count++].iov_base, 1, length, stdin) != length)
			return 1;
	}
	buffers_make(buffers, frames, count, frame_max, true);
	for (uint32_t i = 0; i < buffers->count; i++)
		wrong |= cut(buffers, i);
	for (uint32_t i = 0; i < count; i++)
		free(frames[i].iov_base);
	free(buffers);
	return wrong;
}
