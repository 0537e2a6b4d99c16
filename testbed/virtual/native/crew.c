#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "crew.h"

#define SPINS 500 /* some 20 us: waking a thread takes longer */

/* A number that one thread raises and others wait for. */
struct signal {
	_Atomic uint64_t value;
	_Atomic uint32_t sleepers;
	pthread_mutex_t lock;
	pthread_cond_t raised;
};

struct member {
	struct crew *crew;
	pthread_t thread;
	uint32_t piece;
};

struct crew {
	work_function work;
	void *context;
	uint32_t count;   /* pieces */
	uint32_t started; /* threads */
	_Atomic uint32_t over;
	struct signal begun; /* how often work has begun */
	struct signal done;  /* how many pieces the threads have done */
	struct member *members;
};

static void signal_start(struct signal *signal)
{
	pthread_mutex_init(&signal->lock, NULL);
	pthread_cond_init(&signal->raised, NULL);
}

static void signal_end(struct signal *signal)
{
	pthread_cond_destroy(&signal->raised);
	pthread_mutex_destroy(&signal->lock);
}

static void signal_raise(struct signal *signal)
{
	atomic_fetch_add(&signal->value, 1);
	if (!atomic_load(&signal->sleepers))
		return;
	pthread_mutex_lock(&signal->lock);
	pthread_cond_broadcast(&signal->raised);
	pthread_mutex_unlock(&signal->lock);
}

static void relax(void)
{
#if defined(__x86_64__)
	__builtin_ia32_pause();
#endif
}

/* Waits until the value is at least `wanted`. */
static void signal_await(struct signal *signal, uint64_t wanted)
{
	for (uint32_t i = 0; i < SPINS; i++) {
		if (atomic_load_explicit(&signal->value, memory_order_acquire) >= wanted)
			return;
		relax();
	}
	pthread_mutex_lock(&signal->lock);
	atomic_fetch_add(&signal->sleepers, 1);
	while (atomic_load(&signal->value) < wanted)
		pthread_cond_wait(&signal->raised, &signal->lock);
	atomic_fetch_sub(&signal->sleepers, 1);
	pthread_mutex_unlock(&signal->lock);
}

static void *serve(void *argument)
{
	struct member *member = argument;
	struct crew *crew = member->crew;

	for (uint64_t turn = 1;; turn++) {
		signal_await(&crew->begun, turn);
		if (atomic_load(&crew->over))
			return NULL;
		crew->work(crew->context, member->piece);
		signal_raise(&crew->done);
	}
}

struct crew *crew_new(uint32_t count, work_function work, void *context)
{
	struct crew *crew = calloc(1, sizeof(*crew));

	if (!crew)
		return NULL;
	crew->members = calloc(count, sizeof(*crew->members));
	crew->work = work;
	crew->context = context;
	crew->count = count;
	signal_start(&crew->begun);
	signal_start(&crew->done);
	while (crew->members && crew->started + 1 < count) {
		struct member *member = &crew->members[crew->started];

		*member = (struct member){.crew = crew, .piece = crew->started + 1};
		if (pthread_create(&member->thread, NULL, serve, member))
			break;
		crew->started++;
	}
	if (crew->started + 1 == count)
		return crew;
	crew_free(crew);
	return NULL;
}

void crew_work(struct crew *crew)
{
	uint64_t wanted = atomic_load(&crew->done.value) + crew->started;

	signal_raise(&crew->begun);
	crew->work(crew->context, 0);
	signal_await(&crew->done, wanted);
}

void crew_free(struct crew *crew)
{
	atomic_store(&crew->over, 1);
	signal_raise(&crew->begun);
	for (uint32_t i = 0; i < crew->started; i++)
		pthread_join(crew->members[i].thread, NULL);
	signal_end(&crew->begun);
	signal_end(&crew->done);
	free(crew->members);
	free(crew);
}
