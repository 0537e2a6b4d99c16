/* Windows: spans of virtual time in which the parts of a network cannot affect each other, so that threads run them at
 * the same time. Afterwards everything is as if a single clock had carried out all events in its order (journal.h).
 */
#ifndef AGGLAB_WINDOWS_H
#define AGGLAB_WINDOWS_H

#include "clock.h"

#define GOES_ON (-1)

/* Returns whether a window is possible at the time of the earliest event, and pays. */
int windows_are_due(struct clock *first, int64_t begin_ns);

/* Runs windows as long as they are due, and until `most` actions have been carried out. Returns GOES_ON, or a reason
 * for the run to end. */
int windows_run(struct clock *first, int64_t begin_ns, int64_t until_ns, uint64_t most, uint64_t at_once_max);

void windows_free(struct windows *windows);

#endif
