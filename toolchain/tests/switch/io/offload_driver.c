/* Runs p4native/switch/io/offload.c on one frame, under the sanitizers.
 *
 * stdin: csum_start csum_offset gso_size flags gso_type LENGTH, one line, then LENGTH bytes.
 * stdout: each packet as a line of hexadecimal; "refused" when it cannot be done.
 */
#include <stdio.h>
#include <stdlib.h>

#include "../../../p4native/switch/io/offload.h"

static void print_packet(void *context, uint8_t *data, uint32_t len, const struct known_sum *known)
{
	(void)context, (void)known;
	for (uint32_t i = 0; i < len; i++)
		printf("%02x", data[i]);
	putchar('\n');
}

static int run(struct frame *frame)
{
	int result;

	if (frame->gso_type) {
		result = offload_segment(frame, print_packet, NULL);
	} else {
		result = offload_complete_checksum(frame);
		if (!result)
			print_packet(NULL, frame->data, frame->len, NULL);
	}
	if (result < 0)
		puts("refused");
	return 0;
}

int main(void)
{
	struct frame frame = {0};
	unsigned int start, offset, size, flags, type;

	while (scanf("%u %u %u %u %u %u", &start, &offset, &size, &flags, &type, &frame.len) == 6) {
		frame.csum_start = (uint16_t)start;
		frame.csum_offset = (uint16_t)offset;
		frame.gso_size = (uint16_t)size;
		frame.flags = (uint8_t)flags;
		frame.gso_type = (uint8_t)type;
		frame.data = malloc(frame.len ? frame.len : 1);
		getchar();
		if (fread(frame.data, 1, frame.len, stdin) != frame.len)
			return 1;
		run(&frame);
		puts(".");
		free(frame.data);
	}
	return 0;
}
