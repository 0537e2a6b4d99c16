/* Appended to a generated program and built with sanitizers: runs the commands on standard input.
 *
 * Frames are allocated exactly, and the sink's room is exactly what was asked for, so that the sanitizer sees every
 * byte read or written too far. Everything is in host order. Commands:
 *   F u16 port, u64 now_us, u32 length, frame     answers {1 byte 1, u16 port, u32 length, frame}... 0
 *   A u32 table, i32 priority, u32 action, u32 key length, key, mask, u32 args length, args  answers i32, u64 handle
 *   X u32 table, u64 handle                       delete; answers i32
 *   D u32 table, u32 action, u32 args length, args  set default; answers i32
 *   G/C u32 number, u32 count, {u16 port, u16 rid}...  multicast group / clone session; answers i32
 *   R u32 register, u32 index, u32 length         answers the value
 *   N                                             answers the drops: u64 each
 */
#include <stdio.h>

#define PAYLOAD_AT 42 /* of UDP; in every frame the sum of what follows is known */

static void get(void *to, size_t size)
{
	if (size && fread(to, size, 1, stdin) != 1)
		exit(3);
}

static void put(const void *from, size_t size)
{
	if (size && fwrite(from, size, 1, stdout) != 1)
		exit(4);
}

static uint32_t get32(void)
{
	uint32_t v;

	get(&v, sizeof(v));
	return v;
}

/* size bytes of their own allocation */
static uint8_t *get_bytes(uint32_t size)
{
	uint8_t *data = malloc(size);

	get(data, size);
	return data;
}

static uint8_t *room;

static uint8_t *harness_reserve(void *context, uint16_t port, uint32_t max_len)
{
	(void)context, (void)port;
	room = malloc(max_len);
	return room;
}

static void harness_commit(void *context, uint16_t port, uint32_t len)
{
	uint8_t one = 1;

	(void)context;
	put(&one, 1);
	put(&port, sizeof(port));
	put(&len, sizeof(len));
	put(room, len);
	free(room);
}

static void run_frame(struct pipeline *p)
{
	const struct pl_sink sink = {NULL, harness_reserve, harness_commit};
	uint8_t end = 0, *frame;
	uint16_t port;
	uint64_t now;
	uint32_t len;

	get(&port, sizeof(port));
	get(&now, sizeof(now));
	len = get32();
	frame = get_bytes(len);
	pl_lock(p);
	if (len > PAYLOAD_AT)
		pl_know_sum(p, frame + PAYLOAD_AT, len - PAYLOAD_AT,
			    (uint32_t)csum_words(frame + PAYLOAD_AT, len - PAYLOAD_AT));
	pl_process(p, port, frame, len, now, &sink);
	pl_unlock(p);
	free(frame);
	put(&end, 1);
}

static void run_add(struct pipeline *p)
{
	uint32_t table = get32(), priority = get32(), action = get32(), size = get32();
	uint8_t *key = get_bytes(size), *mask = get_bytes(size), *args;
	uint64_t handle = 0;
	int32_t result;

	size = get32();
	args = get_bytes(size);
	result = pl_table_add(p, table, key, mask, (int32_t)priority, action, args, &handle);
	put(&result, sizeof(result));
	put(&handle, sizeof(handle));
	free(key);
	free(mask);
	free(args);
}

static void run_delete(struct pipeline *p)
{
	uint32_t table = get32();
	uint64_t handle;
	int32_t result;

	get(&handle, sizeof(handle));
	result = pl_table_delete(p, table, handle);
	put(&result, sizeof(result));
}

static void run_default(struct pipeline *p)
{
	uint32_t table = get32(), action = get32(), size = get32();
	uint8_t *args = get_bytes(size);
	int32_t result = pl_table_set_default(p, table, action, args);

	put(&result, sizeof(result));
	free(args);
}

static void run_replicas(struct pipeline *p, bool group)
{
	uint32_t number = get32(), count = get32();
	struct pl_replica *list = (struct pl_replica *)get_bytes(count * (uint32_t)sizeof(*list));
	int32_t result = group ? pl_multicast_group(p, number, list, count)
			       : pl_clone_session(p, number, list, count, 0);

	put(&result, sizeof(result));
	free(list);
}

static void run_register(struct pipeline *p)
{
	uint32_t number = get32(), index = get32(), size = get32();
	uint8_t *value = calloc(1, size + 1);

	if (pl_register_read(p, number, index, value))
		exit(5);
	put(value, size);
	free(value);
}

static void run_drops(struct pipeline *p)
{
	uint64_t counts[DROP_REASONS];

	put(counts, pl_drops(p, counts, DROP_REASONS) * sizeof(*counts));
}

int main(void)
{
	struct pipeline *p = pl_new(1);
	int command;

	if (!p)
		return 2;
	while ((command = getchar()) != EOF) {
		switch (command) {
		case 'F':
			run_frame(p);
			break;
		case 'A':
			run_add(p);
			break;
		case 'X':
			run_delete(p);
			break;
		case 'D':
			run_default(p);
			break;
		case 'G':
		case 'C':
			run_replicas(p, command == 'G');
			break;
		case 'R':
			run_register(p);
			break;
		case 'N':
			run_drops(p);
			break;
		default:
			return 6;
		}
	}
	pl_free(p);
	return 0;
}
