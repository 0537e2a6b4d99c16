/* Which answers are awaited, the same for all systems whose packets carry a slot's tag; the others are counted. */
#ifndef AGGLAB_UNAWAITED_H
#define AGGLAB_UNAWAITED_H

#include "endpoint.h"

/* Returns whether a well-formed answer with this tag is the one that p waits for, and counts it if not. fits: whether
 * it answers what p's packet asked. Tags compare modulo 2^32. */
static inline int is_awaited(struct endpoint *e, const struct pending *p, uint32_t own_tag, uint32_t tag, int fits)
{
	int32_t ahead = (int32_t)(tag - own_tag);

	if (ahead > 0 || (ahead == 0 && (!fits || p->waiting == QUEUED)))
		e->malformed++;
	else if (ahead == 0 && p->waiting)
		return 1;
	else if (ahead == (p->waiting ? -1 : 0))
		e->duplicates++;
	else
		e->late++;
	return 0;
}

#endif
