/* Appended to a generated program and built with sanitizers: malformed packets, many of them.
 *
 *   program SETUP SEED FIRST COUNT
 *
 * SETUP, in host order, is a series of
 *   A u32 table, i32 priority, u32 action, u32 key length, key, mask, u32 args length, args   an entry
 *   G/C u32 number, u32 count, {u16 port, u16 rid}...       multicast group, clone session
 *   F u32 length, frame                                     a well-formed packet, of which others are made
 * Packet N is a function of SEED and N. Every frame and every sink's room is allocated exactly. When the process
 * dies, or a packet takes more than HANG_S, the packet is printed. The answer is one line: packets in, copies out, the
 * sum of all bytes that came out.
 */
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

#define HANG_S 20
#define MAX_FRAMES 4096
#define LONGEST 65535
#define BATCH 64

void __sanitizer_set_death_callback(void (*callback)(void));

static struct {
	uint8_t *data;
	uint32_t length;
} corpus[MAX_FRAMES];
static uint32_t corpus_count;

static uint64_t number, copies, bytes;
static uint16_t port;
static uint8_t *frame, *room;
static uint32_t length;

static void say_packet(void)
{
	fprintf(stderr, "packet %" PRIu64 " port %u ", number, port);
	for (uint32_t i = 0; i < length && i < 4096; i++)
		fprintf(stderr, "%02x", frame[i]);
	fprintf(stderr, "\n");
}

static void hangs(int signal)
{
	(void)signal;
	fprintf(stderr, "hang: more than %d s\n", HANG_S);
	say_packet();
	_exit(9);
}

static uint64_t state;

static uint64_t draw(void)
{
	uint64_t z = state += UINT64_C(0x9e3779b97f4a7c15);

	z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
	return z ^ z >> 31;
}

static uint32_t below(uint32_t limit)
{
	return limit ? (uint32_t)(draw() % limit) : 0;
}

static uint8_t any_byte(void)
{
	static const uint8_t often[] = {0, 1, 2, 3, 4, 5, 0x40, 0x45, 0x7f, 0x80, 0xfe, 0xff};

	return below(2) ? often[below(sizeof(often))] : (uint8_t)draw();
}

/* Replaces the frame by a copy of exactly the new length; new bytes are random. */
static void resize(uint32_t wanted)
{
	uint8_t *made = malloc(wanted);

	for (uint32_t i = length; i < wanted; i++)
		made[i] = any_byte();
	if (frame)
		memcpy(made, frame, wanted < length ? wanted : length);
	free(frame);
	frame = made;
	length = wanted;
}

static void change_one(void)
{
	uint32_t at = below(length), run = 1 + below(8);

	switch (below(8)) {
	case 0:
	case 1:
		resize(below(length + 1));
		break;
	case 2:
		resize(length + below(300));
		break;
	case 3: /* a part repeats, as a loop of headers would */
		if (length) {
			resize(length + run < LONGEST ? length + run : length);
			memmove(frame + at + run < frame + length ? frame + at + run : frame + at, frame + at,
				at + run < length ? length - at - run : 0);
		}
		break;
	case 4:
		if (length)
			frame[at] ^= (uint8_t)(1u << below(8));
		break;
	default:
		for (uint32_t i = at; i < length && i < at + run; i++)
			frame[i] = any_byte();
	}
}

static void make_packet(uint64_t seed)
{
	uint32_t kind, changes;

	state = seed * UINT64_C(0xd1342543de82ef95) + number;
	draw();
	kind = below(100);
	free(frame);
	frame = NULL;
	length = 0;
	port = (uint16_t)(below(8) ? below(8) : draw());
	if (kind < 8 || !corpus_count) {
		resize(below(kind < 7 ? 200 : kind < 8 && !below(40) ? LONGEST + 1 : 2000));
		return;
	}
	kind = below(corpus_count);
	frame = malloc(corpus[kind].length);
	length = corpus[kind].length;
	memcpy(frame, corpus[kind].data, length);
	for (changes = below(6); changes; changes--)
		change_one();
	if (length > LONGEST)
		resize(LONGEST);
}

static uint8_t *fuzz_reserve(void *context, uint16_t out, uint32_t max_len)
{
	(void)context, (void)out;
	room = malloc(max_len);
	return room;
}

static void fuzz_commit(void *context, uint16_t out, uint32_t len)
{
	(void)context, (void)out;
	for (uint32_t i = 0; i < len; i++)
		bytes += room[i];
	free(room);
	copies++;
}

static void get(FILE *from, void *to, size_t size)
{
	if (size && fread(to, size, 1, from) != 1)
		exit(3);
}

static uint32_t get32(FILE *from)
{
	uint32_t value;

	get(from, &value, sizeof(value));
	return value;
}

static uint8_t *get_bytes(FILE *from, uint32_t size)
{
	uint8_t *data = malloc(size);

	get(from, data, size);
	return data;
}

static void add_entry(struct pipeline *p, FILE *from)
{
	uint32_t table = get32(from), priority = get32(from), action = get32(from), size = get32(from);
	uint8_t *key = get_bytes(from, size), *mask = get_bytes(from, size);
	uint8_t *args = get_bytes(from, get32(from));
	uint64_t handle;

	pl_table_add(p, table, key, mask, (int32_t)priority, action, args, &handle);
	free(key);
	free(mask);
	free(args);
}

static void read_replicas(struct pipeline *p, FILE *from, int kind)
{
	uint32_t wanted = get32(from), count = get32(from);
	struct pl_replica *list = (struct pl_replica *)get_bytes(from, count * (uint32_t)sizeof(*list));

	if (kind == 'G')
		pl_multicast_group(p, wanted, list, count);
	else
		pl_clone_session(p, wanted, list, count, 0);
	free(list);
}

static void read_setup(struct pipeline *p, FILE *from)
{
	int kind;

	while ((kind = getc(from)) != EOF) {
		if (kind == 'A') {
			add_entry(p, from);
		} else if (kind == 'G' || kind == 'C') {
			read_replicas(p, from, kind);
		} else if (kind == 'F' && corpus_count < MAX_FRAMES) {
			corpus[corpus_count].length = get32(from);
			corpus[corpus_count].data = get_bytes(from, corpus[corpus_count].length);
			corpus_count++;
		} else {
			exit(6);
		}
	}
	fclose(from);
}

int main(int argc, char **argv)
{
	const struct pl_sink sink = {NULL, fuzz_reserve, fuzz_commit};
	struct pipeline *p = pl_new(1);
	uint64_t seed, first, count;
	FILE *setup;

	if (!p || argc != 5)
		return 2;
	setup = fopen(argv[1], "rb");
	if (!setup)
		return 2;
	read_setup(p, setup);
	seed = strtoull(argv[2], NULL, 10);
	first = strtoull(argv[3], NULL, 10);
	count = strtoull(argv[4], NULL, 10);
	signal(SIGALRM, hangs);
	__sanitizer_set_death_callback(say_packet);
	pl_lock(p);
	for (number = first; number < first + count; number++) {
		if (number % BATCH == 0)
			alarm(HANG_S);
		make_packet(seed);
		pl_process(p, port, frame, length, number * 100, &sink);
	}
	pl_unlock(p);
	alarm(0);
	free(frame);
	for (uint32_t i = 0; i < corpus_count; i++)
		free(corpus[i].data);
	pl_free(p);
	printf("%" PRIu64 " %" PRIu64 " %" PRIu64 "\n", count, copies, bytes);
	return 0;
}
