/* Threads that carry out pieces of work together, again and again, with short waits in between. */
#ifndef AGGLAB_CREW_H
#define AGGLAB_CREW_H

#include <stdint.h>

struct crew;

typedef void (*work_function)(void *context, uint32_t piece);

/* Starts count - 1 threads. Returns NULL without memory or threads. */
struct crew *crew_new(uint32_t count, work_function work, void *context);

/* Carries out pieces 0 to count - 1: the first in the calling thread, each of the others in its own. */
void crew_work(struct crew *crew);

void crew_free(struct crew *crew);

#endif
