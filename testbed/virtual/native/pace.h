/* Chooses whether to run windows or one event after the other, whichever takes less real time. Windows gain nothing if
 * they have few events, or if other programs use the processors. The choice changes no result.
 */
#ifndef AGGLAB_PACE_H
#define AGGLAB_PACE_H

#include <stdint.h>

struct pace {
	int in_windows; /* the choice for the present batch of actions */
	int is_fixed;   /* always windows: for tests */
	int is_clean;   /* nothing but the chosen way has been used in the batch */
	uint64_t batches;
	uint64_t begun, end; /* actions carried out at its begin and at its end */
	int64_t begun_ns;    /* real time */
	double ns_an_action[2]; /* how long an action took lately: one after the other, in windows; 0: not known */
};

/* Returns whether to run windows now, where they are possible. happened: actions carried out so far. */
int pace_in_windows(struct pace *pace, uint64_t happened);

/* Notes that the chosen way was not possible for a while. */
void pace_interrupted(struct pace *pace);

#endif
