/*
 * What happened before what: vector clocks (Mattern, "Virtual Time and Global States of Distributed Systems", 1989), with
 * the accesses of each run of bytes beside the allocation that it belongs to.
 *
 * A stream's operations are counted, and each knows of which operations of all streams it comes after. Two accesses to the
 * same bytes, of which one at least writes, are in order if the second knows of the first.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "tests/doubles/hip/double.h"

/* Room, and from how many on what is no longer needed is looked for. Each access looks at all of them. */
enum { RECORDS = 16384, MANY = 256 };

typedef struct record {
    size_t   begin, end;
    uint32_t stream, number;
    uint32_t writes;
} record;

struct double_shadow {
    uint32_t n, many; /* how many it must be to be looked through again */
    record   records[RECORDS];
};

/* What the processes of a job share. */
struct job {
    pthread_mutex_t lock;
    uint32_t        is_ready;
    uint32_t        streams;                        /* numbers that have been given out */
    uint32_t        ended[DOUBLE_STREAMS], n_ended; /* of them, those of streams that are no more */
    double_clock    last;                           /* the last operation of each of these */
    double_clock    hosts;
};

static struct job    *job;
static pthread_once_t once = PTHREAD_ONCE_INIT;

/* ---- the job ----------------------------------------------------------------------------------------------------- */

static void initialize(struct job *fresh)
{
    pthread_mutexattr_t attributes;

    (void)pthread_mutexattr_init(&attributes);
    (void)pthread_mutexattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED);
    (void)pthread_mutexattr_setrobust(&attributes, PTHREAD_MUTEX_ROBUST);
    (void)pthread_mutex_init(&fresh->lock, &attributes);
    (void)pthread_mutexattr_destroy(&attributes);
    __atomic_store_n(&fresh->is_ready, 1, __ATOMIC_RELEASE);
}

static void join_job(void)
{
    const char *name = getenv("HIP_DOUBLE_JOB");
    char        job_name[128];
    int         file = -1;
    bool        made = false;

    if (name != NULL) {
        (void)snprintf(job_name, sizeof job_name, "/%s", name);
        file = shm_open(job_name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
        made = file >= 0;
        file = made ? file : shm_open(job_name, O_RDWR | O_CLOEXEC, 0600);
        if (file < 0 || ftruncate(file, sizeof *job) != 0) {
            perror("double of HIP: shared memory");
            abort();
        }
    }
    job = mmap(NULL, sizeof *job, PROT_READ | PROT_WRITE, MAP_SHARED | (file < 0 ? MAP_ANONYMOUS : 0), file, 0);
    if (job == MAP_FAILED) {
        perror("double of HIP: mmap");
        abort();
    }
    if (file >= 0) {
        (void)close(file);
    }
    if (made || name == NULL) {
        initialize(job);
    }
    while (__atomic_load_n(&job->is_ready, __ATOMIC_ACQUIRE) == 0) {
        (void)usleep(100);
    }
}

void double_order_join(void)
{
    (void)pthread_once(&once, join_job);
}

/* Also where another process has died inside: then the test has failed anyway. */
static void lock_job(void)
{
    double_order_join();
    if (pthread_mutex_lock(&job->lock) == EOWNERDEAD) {
        (void)pthread_mutex_consistent(&job->lock);
    }
}

static void unlock_job(void)
{
    (void)pthread_mutex_unlock(&job->lock);
}

unsigned double_order_stream(uint32_t *done)
{
    lock_job();
    const unsigned stream = job->n_ended > 0 ? job->ended[--job->n_ended] : job->streams++;
    *done                 = stream < DOUBLE_STREAMS ? job->last.done[stream] : 0;
    unlock_job();
    if (stream >= DOUBLE_STREAMS) {
        (void)fprintf(stderr, "double of HIP: more than %d streams in a job\n", DOUBLE_STREAMS);
        abort();
    }
    return stream;
}

void double_order_stream_ended(unsigned stream, uint32_t done)
{
    lock_job();
    job->last.done[stream]     = done;
    job->ended[job->n_ended++] = stream;
    unlock_job();
}

/* ---- clocks ------------------------------------------------------------------------------------------------------ */

void double_clock_join(double_clock *clock, const double_clock *other)
{
    for (size_t s = 0; s < DOUBLE_STREAMS; s++) {
        clock->done[s] = other->done[s] > clock->done[s] ? other->done[s] : clock->done[s];
    }
}

void double_order_hosts(double_clock *known)
{
    lock_job();
    double_clock_join(known, &job->hosts);
    unlock_job();
}

void double_order_host_saw(const double_clock *seen)
{
    lock_job();
    double_clock_join(&job->hosts, seen);
    unlock_job();
}

/* ---- accesses ---------------------------------------------------------------------------------------------------- */

size_t double_shadow_bytes(void)
{
    return sizeof(double_shadow);
}

void double_shadow_open(double_shadow *shadow)
{
    shadow->n    = 0;
    shadow->many = MANY;
}

static void add(double_shadow *shadow, record one)
{
    if (one.begin >= one.end) {
        return;
    }
    if (shadow->n == RECORDS) {
        (void)fprintf(stderr, "double of HIP: more than %d runs of bytes to remember of one allocation\n", RECORDS);
        abort();
    }
    shadow->records[shadow->n++] = one;
}

static bool is_before(const record *old, unsigned stream, const double_clock *known)
{
    return old->stream == stream || known->done[old->stream] >= old->number;
}

/*
 * Where much is remembered: takes out what all hosts know to be done, and so all that they enqueue from now on. What has
 * been enqueued before and has still to run is no longer held against it, hence not sooner.
 */
static void forget_known(double_shadow *shadow)
{
    const uint32_t n = shadow->n;

    if (n < shadow->many) {
        return;
    }
    shadow->n = 0;
    for (uint32_t i = 0; i < n; i++) {
        if (job->hosts.done[shadow->records[i].stream] < shadow->records[i].number) {
            shadow->records[shadow->n++] = shadow->records[i];
        }
    }
    shadow->many = shadow->n < MANY / 2 ? MANY : shadow->n < RECORDS / 4 ? 2 * shadow->n : RECORDS / 4 * 3;
}

/* Takes from what is remembered what the new access stands for as well: whoever comes after it comes after these. */
static void forget_covered(double_shadow *shadow, const double_access *access, unsigned stream,
                           const double_clock *known)
{
    const uint32_t n    = shadow->n;
    uint32_t       kept = 0;
    record         rest[2];

    for (uint32_t i = 0; i < n; i++) {
        const record old = shadow->records[i];

        if (old.end <= access->begin || old.begin >= access->end || (old.writes != 0 && !access->writes) ||
            !is_before(&old, stream, known)) {
            shadow->records[kept++] = old;
            continue;
        }
        rest[0]       = old;
        rest[0].end   = access->begin;
        rest[1]       = old;
        rest[1].begin = access->end;
        if (rest[0].begin < rest[0].end) {
            shadow->records[kept++] = rest[0];
            rest[0].begin           = rest[0].end;
        }
        if (rest[1].begin < rest[1].end) {
            if (kept <= i) {
                shadow->records[kept++] = rest[1];
            } else {
                add(shadow, rest[1]); /* behind the old ones, and moved down with them below */
            }
        }
    }
    (void)memmove(&shadow->records[kept], &shadow->records[n], (shadow->n - n) * sizeof(record));
    shadow->n = kept + shadow->n - n;
}

void double_order_access(const double_access *access, unsigned stream, const double_clock *known)
{
    double_shadow *shadow = double_memory_shadow(access->memory);
    record         wrong  = {0};

    lock_job();
    forget_known(shadow);
    for (uint32_t i = 0; i < shadow->n; i++) {
        const record *old = &shadow->records[i];

        if (old->begin < access->end && access->begin < old->end && (old->writes != 0 || access->writes) &&
            !is_before(old, stream, known)) {
            wrong = *old;
        }
    }
    forget_covered(shadow, access, stream, known);
    add(shadow, (record){.begin  = access->begin,
                         .end    = access->end,
                         .stream = stream,
                         .number = known->done[stream],
                         .writes = access->writes});
    unlock_job();
    if (wrong.end > 0) {
        double_mistake(
            "operation %u of stream %u %s bytes %zu to %zu of an allocation, without an order to operation %u of "
            "stream %u, which %s bytes %zu to %zu",
            known->done[stream], stream, access->writes ? "writes" : "reads", access->begin, access->end, wrong.number,
            wrong.stream, wrong.writes != 0 ? "writes" : "reads", wrong.begin, wrong.end);
    }
}

bool double_order_uses(const double_memory *memory, unsigned stream)
{
    const double_shadow *shadow = double_memory_shadow(memory);
    bool                 uses   = false;

    lock_job();
    for (uint32_t i = 0; i < shadow->n; i++) {
        const record *old = &shadow->records[i];

        uses = uses || (old->stream == stream && job->hosts.done[stream] < old->number);
    }
    unlock_job();
    return uses;
}
