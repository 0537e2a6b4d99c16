/* Seeded loss at one side of a port: frame k is dropped exactly when output k of splitmix64 is below a threshold. */
#ifndef P4NATIVE_DROP_H
#define P4NATIVE_DROP_H

#include <stdbool.h>
#include <stdint.h>

#include "loop.h"

struct drop;

/* Returns NULL without memory. */
struct drop *drop_new(uint64_t key, uint64_t threshold, bool always);
void drop_free(struct drop *drop);

/* Counts one frame and says whether it is dropped. From one thread only. */
bool drop_frame(struct drop *drop, uint32_t len);

/* Reads the counts so far, and the numbers of the first dropped frames. From any thread. */
void drop_read(const struct drop *drop, struct loop_drop_stats *out, uint64_t *numbers, uint32_t room);

#endif
