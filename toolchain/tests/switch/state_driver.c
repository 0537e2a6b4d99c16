/* Drives everything that a program keeps beside plain entries; compiled after the program, under sanitizers. */
#include <assert.h>

static uint8_t room[70000];

static uint8_t *reserve(void *context, uint16_t port, uint32_t max_len)
{
	(void)context, (void)port;
	return max_len <= sizeof(room) ? room : NULL;
}

static void commit(void *context, uint16_t port, uint32_t len)
{
	(void)port, (void)len;
	++*(uint64_t *)context;
}

static void profiles(struct pipeline *p)
{
	uint8_t args[3] = {7, 0, 1};
	uint32_t member[40], group;
	uint64_t handle;

	for (uint32_t i = 0; i < 40; i++)
		assert(!pl_member_add(p, 0, profile_actions_0[0], args, &member[i]) && member[i] == i);
	for (uint32_t i = 0; i < 20; i++)
		assert(!pl_group_add(p, 0, &group) && group == i);
	for (uint32_t i = 0; i < 10; i++)
		assert(!pl_group_set(p, 0, i, member + i, i));
	assert(pl_group_set(p, 0, 20, member, 1) == -ENOENT);
	for (uint32_t i = 0; i < 250; i++) {
		uint8_t key = (uint8_t)i, mask = 0xff;

		assert(!pl_table_add_indirect(p, 0, &key, &mask, 0, i % 10 | PL_GROUP, &handle));
		assert(!pl_table_modify_indirect(p, 0, handle, i % 2 ? i % 40 : i % 10 | PL_GROUP));
		if (i % 7 == 0)
			assert(!pl_table_delete(p, 0, handle));
	}
	assert(pl_member_delete(p, 0, 1) == -EBUSY && pl_group_delete(p, 0, 2) == -EBUSY);
	assert(!pl_group_delete(p, 0, 19) && pl_group_delete(p, 0, 19) == -ENOENT);
	assert(pl_table_add_indirect(p, 0, args, args, 0, 19 | PL_GROUP, &handle) == -ENOENT);
}

static void meters(struct pipeline *p)
{
	struct pl_rate rates[2] = {{0.001, 3}, {1e6, UINT64_MAX}}, read[2];
	uint32_t configured;

	assert(!pl_meter_set(p, 0, 3, rates) && !pl_meter_read(p, 0, 3, read, &configured) && configured);
	assert(read[1].burst == UINT64_MAX && pl_meter_set(p, 0, 4, rates) == -EINVAL);
	rates[1].per_us = 1e300;
	assert(pl_meter_set(p, 0, 3, rates) == -EINVAL);
}

int main(void)
{
	static uint8_t data[DIGEST_ROOM];
	static char text[MESSAGE_ROOM];
	uint64_t sent = 0;
	struct pl_sink sink = {&sent, reserve, commit};
	const uint8_t members[] = {5, 0xff, 0x80, 0x80};
	struct pipeline *p = pl_new(1);

	profiles(p);
	meters(p);
	assert(!pl_value_set_fill(p, 0, members, 2) && !pl_value_set_fill(p, 0, members, 1));
	for (uint32_t i = 0; i < 60000; i++) {
		uint8_t frame[8] = {(uint8_t)i, (uint8_t)(i >> 8), (uint8_t)(i * 7), 1, 2, 3, 4, 5};
		uint8_t *exact = malloc(i % 9);

		memcpy(exact, frame, i % 9);
		/* Now and then the clock jumps, to its end too. */
		pl_process(p, 1, exact, i % 9, i % 1000 ? i : UINT64_MAX - i, &sink);
		free(exact);
	}
	assert(sent && pl_take_digests(p, data, 1) > 1);
	assert(pl_take_digests(p, data, sizeof(data)) > 1 && !pl_take_digests(p, data, sizeof(data)));
	assert(pl_take_messages(p, text, sizeof(text)) > MESSAGE_ROOM / 2);
	pl_free(p);
	return 0;
}
