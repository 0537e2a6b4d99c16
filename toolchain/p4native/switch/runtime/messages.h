/* What a program says about itself, one line each: log_msg and failed asserts (DETAIL 1), every step (DETAIL 2). A
 * program compiled with DETAIL 0 has none of it. */
#ifndef P4NATIVE_MESSAGES_H
#define P4NATIVE_MESSAGES_H

#include <stdarg.h>
#include <stdio.h>

#define SHOWN_BYTES 64

#if DETAIL
__attribute__((format(printf, 2, 3), unused)) static void say(struct pipeline *p, const char *format, ...)
{
	uint32_t room = MESSAGE_ROOM - p->messages_used;
	va_list values;
	int length;

	va_start(values, format);
	length = vsnprintf(p->messages + p->messages_used, room, format, values);
	va_end(values);
	if (length > 0 && (uint32_t)length < room)
		p->messages_used += (uint32_t)length;
}

__attribute__((unused)) static void say_bytes(struct pipeline *p, const uint8_t *data, uint32_t bytes)
{
	say(p, "0x");
	for (uint32_t i = 0; i < bytes && i < SHOWN_BYTES; i++)
		say(p, "%02x", data[i]);
	if (bytes > SHOWN_BYTES)
		say(p, "... (%u bytes)", bytes);
}
#endif

#if DETAIL > 1
#define TRACE(...) say(p, __VA_ARGS__)
#else
#define TRACE(...) ((void)0)
#endif

#endif
