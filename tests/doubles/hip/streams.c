/*
 * Streams: a thread each, which takes its time; copies; and events, which live in memory that processes can share. A host that
 * waits for a stream carries out what it finds there itself: it need not wake a thread and be woken by it.
 */
#include "tests/doubles/hip/streams.h"

#include <fcntl.h>
#include <limits.h>
#include <linux/futex.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { MOMENTS = 16 };

struct ihipStream_t {
    hipStream_t       next;
    pthread_t         thread;
    pthread_mutex_t   lock;
    pthread_cond_t    there;   /* for its thread: there is something to do */
    pthread_cond_t    changed; /* for hosts: it is over, or one asks after the stream */
    double_operation *head, *tail;
    bool              busy; /* the head is being carried out */
    double_moment     now;
    uint64_t          random;
    uint64_t          asked; /* how often a host has asked whether it is idle, or waited for that */
    bool              stop;
};

/* Of an event, its last recordings: the `ticket`th is at place ticket % MOMENTS once it has been carried out. */
typedef struct recordings {
    uint64_t identity;
    uint32_t issued;
    uint32_t waiting; /* threads of any process */
    struct {
        uint32_t     ticket;
        double_clock clock;
    } moment[MOMENTS];
} recordings;

struct ihipEvent_t {
    recordings *shared;
    int         file; /* -1: opened of another process */
    int         users;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static hipStream_t     all;
static hipStream_t     default_streams[DOUBLE_DEVICES];

/* ---- the threads ------------------------------------------------------------------------------------------------- */

/* Before one operation of four: the others begin as soon as they can, and time goes into what is tested. */
static void delay(hipStream_t stream)
{
    const long long most = double_setting("HIP_DOUBLE_DELAY_US", 100);

    stream->random = stream->random * 6364136223846793005u + 1442695040888963407u;
    if (most > 0 && stream->random >> 62 == 0) {
        (void)usleep((useconds_t)((stream->random >> 33) % (uint64_t)most));
    }
}

/* Until a host asks after the stream, or it has had all the time in which it might do something rash. */
static void hold(hipStream_t stream, const double_operation *operation)
{
    const long long left = 1000000 * double_setting("HIP_DOUBLE_HOLD_MS", 0);
    struct timespec end;

    (void)clock_gettime(CLOCK_REALTIME, &end);
    end.tv_sec += (end.tv_nsec + left) / 1000000000;
    end.tv_nsec = (end.tv_nsec + left) % 1000000000;
    (void)pthread_mutex_lock(&stream->lock);
    while (stream->asked == operation->asked && left > 0) {
        if (pthread_cond_timedwait(&stream->changed, &stream->lock, &end) != 0) {
            break;
        }
    }
    (void)pthread_mutex_unlock(&stream->lock);
}

static void carry_out(hipStream_t stream, double_operation *operation)
{
    delay(stream);
    if (operation->pageable) {
        hold(stream, operation);
    }
    double_clock_join(&stream->now.clock, &operation->hosts);
    stream->now.clock.done[stream->now.stream]++;
    operation->run(operation, &stream->now);
}

/* With its lock held, and nobody at it; the lock is given back meanwhile. */
static void carry_out_head(hipStream_t stream)
{
    double_operation *operation = stream->head;

    stream->busy = true;
    (void)pthread_mutex_unlock(&stream->lock);
    carry_out(stream, operation);
    (void)pthread_mutex_lock(&stream->lock);
    stream->busy = false;
    stream->head = operation->next;
    stream->tail = stream->head == NULL ? NULL : stream->tail;
    free(operation);
    (void)pthread_cond_broadcast(&stream->changed);
}

static void *work(void *argument)
{
    hipStream_t stream = argument;

    (void)pthread_mutex_lock(&stream->lock);
    while (stream->head != NULL || !stream->stop) {
        if (stream->head != NULL && !stream->busy) {
            carry_out_head(stream);
        } else {
            (void)pthread_cond_wait(&stream->there, &stream->lock);
        }
    }
    (void)pthread_mutex_unlock(&stream->lock);
    return NULL;
}

static hipStream_t make_stream(int device)
{
    hipStream_t stream = calloc(1, sizeof *stream);
    uint32_t    done;

    if (stream == NULL) {
        return NULL;
    }
    (void)pthread_mutex_init(&stream->lock, NULL);
    (void)pthread_cond_init(&stream->there, NULL);
    (void)pthread_cond_init(&stream->changed, NULL);
    stream->now.device                         = device;
    stream->now.stream                         = double_order_stream(&done);
    stream->now.clock.done[stream->now.stream] = done;
    stream->random = (uint64_t)double_setting("HIP_DOUBLE_SEED", 1) * 0x9e3779b97f4a7c15u + stream->now.stream;
    if (pthread_create(&stream->thread, NULL, work, stream) != 0) {
        free(stream);
        return NULL;
    }
    (void)pthread_mutex_lock(&lock);
    stream->next = all;
    all          = stream;
    (void)pthread_mutex_unlock(&lock);
    return stream;
}

static hipStream_t known_stream(hipStream_t stream)
{
    static pthread_mutex_t making = PTHREAD_MUTEX_INITIALIZER;
    hipStream_t           *mine   = &default_streams[double_device()];

    if (stream != NULL) {
        return stream;
    }
    (void)pthread_mutex_lock(&making);
    if (*mine == NULL) {
        *mine = make_stream(double_device());
    }
    stream = *mine;
    (void)pthread_mutex_unlock(&making);
    return stream;
}

/* Puts a copy of it behind the others, without telling the stream's thread. */
static hipError_t append(hipStream_t stream, const double_operation *operation, size_t bytes,
                         void (*run)(double_operation *, double_moment *))
{
    double_operation *mine = malloc(bytes);

    if (mine == NULL || stream == NULL) {
        free(mine);
        return double_error(hipErrorOutOfMemory);
    }
    memcpy(mine, operation, bytes);
    mine->next = NULL;
    mine->run  = run;
    memset(&mine->hosts, 0, sizeof mine->hosts);
    double_order_hosts(&mine->hosts);
    (void)pthread_mutex_lock(&stream->lock);
    mine->asked = stream->asked;
    if (stream->tail != NULL) {
        stream->tail->next = mine;
    } else {
        stream->head = mine;
    }
    stream->tail = mine;
    (void)pthread_mutex_unlock(&stream->lock);
    return hipSuccess;
}

hipError_t double_enqueue(hipStream_t stream, const double_operation *operation, size_t bytes,
                          void (*run)(double_operation *, double_moment *))
{
    stream                 = known_stream(stream);
    const hipError_t error = append(stream, operation, bytes, run);

    if (error == hipSuccess) {
        (void)pthread_cond_signal(&stream->there);
    }
    return error;
}

/* With its lock held. */
static void ask(hipStream_t stream)
{
    stream->asked++;
    (void)pthread_cond_broadcast(&stream->changed);
}

static void wait_until_idle(hipStream_t stream)
{
    (void)pthread_mutex_lock(&stream->lock);
    ask(stream);
    while (stream->head != NULL) {
        if (stream->busy) {
            (void)pthread_cond_wait(&stream->changed, &stream->lock);
        } else {
            carry_out_head(stream);
        }
    }
    (void)pthread_mutex_unlock(&stream->lock);
}

void double_streams_idle(void)
{
    (void)pthread_mutex_lock(&lock);
    for (hipStream_t stream = all; stream != NULL; stream = stream->next) {
        wait_until_idle(stream);
    }
    (void)pthread_mutex_unlock(&lock);
}

bool double_streams_use(const double_memory *memory)
{
    bool uses = false;

    double_streams_idle();
    (void)pthread_mutex_lock(&lock);
    for (hipStream_t stream = all; stream != NULL; stream = stream->next) {
        uses = uses || double_order_uses(memory, stream->now.stream);
    }
    (void)pthread_mutex_unlock(&lock);
    return uses;
}

/* ---- streams ----------------------------------------------------------------------------------------------------- */

hipError_t hipStreamCreateWithPriority(hipStream_t *stream, unsigned int flags, int priority)
{
    const hipError_t error = double_enter(__func__);

    *stream = NULL;
    if (error != hipSuccess || (flags & ~(unsigned)hipStreamNonBlocking) != 0 || priority < -1 || priority > 1) {
        return error != hipSuccess ? error : double_error(hipErrorInvalidValue);
    }
    *stream = make_stream(double_device());
    return *stream != NULL ? hipSuccess : double_error(hipErrorOutOfMemory);
}

hipError_t hipStreamDestroy(hipStream_t stream)
{
    const hipError_t error = double_enter(__func__);

    if (error != hipSuccess || stream == NULL) {
        return error != hipSuccess ? error : double_error(hipErrorInvalidHandle);
    }
    (void)pthread_mutex_lock(&lock);
    for (hipStream_t *link = &all; *link != NULL; link = &(*link)->next) {
        if (*link == stream) {
            *link = stream->next;
            break;
        }
    }
    (void)pthread_mutex_unlock(&lock);
    (void)pthread_mutex_lock(&stream->lock);
    if (stream->head != NULL) { /* HIP says neither that it is waited for nor that it is not */
        double_mistake("a stream is destroyed with work in it");
    }
    stream->stop = true;
    (void)pthread_cond_signal(&stream->there);
    (void)pthread_mutex_unlock(&stream->lock);
    (void)pthread_join(stream->thread, NULL);
    double_order_stream_ended(stream->now.stream, stream->now.clock.done[stream->now.stream]);
    (void)pthread_mutex_destroy(&stream->lock);
    (void)pthread_cond_destroy(&stream->there);
    (void)pthread_cond_destroy(&stream->changed);
    free(stream);
    return hipSuccess;
}

/* The host has seen that all of it is done. */
static void saw(hipStream_t stream)
{
    (void)pthread_mutex_lock(&stream->lock);
    const double_clock clock = stream->now.clock;
    (void)pthread_mutex_unlock(&stream->lock);
    double_order_host_saw(&clock);
}

hipError_t hipStreamSynchronize(hipStream_t stream)
{
    const hipError_t error = double_enter(__func__);

    if (error != hipSuccess) {
        return error;
    }
    stream = known_stream(stream);
    wait_until_idle(stream);
    saw(stream);
    return hipSuccess;
}

hipError_t hipStreamQuery(hipStream_t stream)
{
    const hipError_t error = double_enter(__func__);

    if (error != hipSuccess) {
        return error;
    }
    stream = known_stream(stream);
    (void)pthread_mutex_lock(&stream->lock);
    const bool idle = stream->head == NULL;
    ask(stream);
    (void)pthread_mutex_unlock(&stream->lock);
    if (!idle) {
        return hipErrorNotReady;
    }
    saw(stream);
    return hipSuccess;
}

hipError_t hipDeviceSynchronize(void)
{
    const hipError_t error = double_enter(__func__);

    if (error != hipSuccess) {
        return error;
    }
    (void)pthread_mutex_lock(&lock);
    for (hipStream_t stream = all; stream != NULL; stream = stream->next) {
        if (stream->now.device == double_device()) {
            wait_until_idle(stream);
            saw(stream);
        }
    }
    (void)pthread_mutex_unlock(&lock);
    return hipSuccess;
}

/* ---- copies ------------------------------------------------------------------------------------------------------ */

typedef struct copy {
    double_operation operation;
    void            *to;
    const void      *from; /* NULL: `value` instead */
    int              value;
    size_t           bytes;
} copy;

/* Where the bytes are; tells of the access where it is to device or pinned memory. */
static void *reach(const void *address, size_t bytes, bool writes, const double_moment *now, bool *on_device)
{
    double_memory *memory = double_memory_of(address);
    size_t         offset;

    if (memory == NULL) {
        *on_device = false;
        return (void *)(uintptr_t)address;
    }
    *on_device = double_memory_device(memory) >= 0;
    void *view = double_memory_view(memory, address, bytes, &offset);
    double_order_access(&(double_access){.memory = memory, .begin = offset, .end = offset + bytes, .writes = writes},
                        now->stream, &now->clock);
    return view;
}

static double seconds(void)
{
    struct timespec now;

    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static void run_copy(double_operation *operation, double_moment *now)
{
    const copy *this     = (const copy *)operation;
    const long long rate = double_setting("HIP_DOUBLE_COPY_GBPS", 0);
    const double    end  = seconds() + (rate > 0 ? (double)this->bytes / (1e9 * (double)rate) : 0.0);
    bool            to_device, from_device = true;
    void           *to = reach(this->to, this->bytes, true, now, &to_device);

    if (this->from == NULL) {
        memset(to, this->value, this->bytes);
        return;
    }
    memmove(to, reach(this->from, this->bytes, false, now, &from_device), this->bytes);
    const double left = end - seconds();
    if (to_device != from_device && left > 0) {
        (void)usleep((useconds_t)(left * 1e6));
    }
}

static copy describe_copy(void *to, const void *from, int value, size_t bytes)
{
    copy one = {.to = to, .from = from, .value = value, .bytes = bytes};

    one.operation.pageable = double_memory_of(to) == NULL || (from != NULL && double_memory_of(from) == NULL);
    return one;
}

static hipError_t check_copy(const char *function, const void *to, const void *from, size_t bytes, hipMemcpyKind kind)
{
    const hipError_t error = double_enter(function);

    if (error != hipSuccess || (bytes > 0 && (to == NULL || from == NULL)) || kind != hipMemcpyDefault) {
        return error != hipSuccess ? error : double_error(hipErrorInvalidValue);
    }
    return hipSuccess;
}

hipError_t hipMemcpyAsync(void *to, const void *from, size_t bytes, hipMemcpyKind kind, hipStream_t stream)
{
    const hipError_t error = check_copy(__func__, to, from, bytes, kind);

    if (error != hipSuccess || bytes == 0) {
        return error;
    }
    const copy one = describe_copy(to, from, 0, bytes);
    return double_enqueue(stream, &one.operation, sizeof one, run_copy);
}

hipError_t hipMemcpy(void *to, const void *from, size_t bytes, hipMemcpyKind kind)
{
    hipError_t error = check_copy(__func__, to, from, bytes, kind);

    if (error != hipSuccess) {
        return error;
    }
    hipStream_t stream = known_stream(NULL);
    const copy  one    = describe_copy(to, from, 0, bytes);
    error              = bytes > 0 ? append(stream, &one.operation, sizeof one, run_copy) : hipSuccess;
    if (error == hipSuccess) {
        wait_until_idle(stream);
        saw(stream);
    }
    return error;
}

hipError_t hipMemsetAsync(void *memory, int value, size_t bytes, hipStream_t stream)
{
    const hipError_t error = double_enter(__func__);

    if (error != hipSuccess || (bytes > 0 && memory == NULL)) {
        return error != hipSuccess ? error : double_error(hipErrorInvalidValue);
    }
    const copy one = describe_copy(memory, NULL, value, bytes);
    return bytes > 0 ? double_enqueue(stream, &one.operation, sizeof one, run_copy) : hipSuccess;
}

/* ---- events ------------------------------------------------------------------------------------------------------ */

typedef struct event_operation {
    double_operation operation;
    hipEvent_t       event;
    uint32_t         ticket;
} event_operation;

/* What a hipIpcEventHandle_t holds. */
typedef struct event_ticket {
    char     magic[8];
    int64_t  process, file;
    uint64_t identity;
} event_ticket;

static hipEvent_t map_event(int file)
{
    hipEvent_t event  = calloc(1, sizeof *event);
    void      *shared = mmap(NULL, sizeof(recordings), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);

    if (event == NULL || shared == MAP_FAILED) {
        free(event);
        return NULL;
    }
    *event = (struct ihipEvent_t){.shared = shared, .file = file, .users = 1};
    return event;
}

static void leave_event(hipEvent_t event)
{
    if (__atomic_sub_fetch(&event->users, 1, __ATOMIC_ACQ_REL) > 0) {
        return;
    }
    (void)munmap(event->shared, sizeof *event->shared);
    if (event->file >= 0) {
        (void)close(event->file);
    }
    free(event);
}

hipError_t hipEventCreateWithFlags(hipEvent_t *event, unsigned flags)
{
    static uint64_t  made;
    const hipError_t error = double_enter(__func__);

    *event = NULL;
    if (error != hipSuccess || (flags & ~(unsigned)(hipEventDisableTiming | hipEventInterprocess)) != 0) {
        return error != hipSuccess ? error : double_error(hipErrorInvalidValue);
    }
    const int file = memfd_create("hip-double-event", MFD_CLOEXEC);
    if (file < 0 || ftruncate(file, sizeof(recordings)) != 0 || (*event = map_event(file)) == NULL) {
        if (file >= 0) {
            (void)close(file);
        }
        return double_error(hipErrorOutOfMemory);
    }
    if ((flags & hipEventInterprocess) != 0) {
        (*event)->shared->identity = (uint64_t)getpid() << 32 | __atomic_add_fetch(&made, 1, __ATOMIC_RELAXED);
    }
    return hipSuccess;
}

hipError_t hipEventDestroy(hipEvent_t event)
{
    const hipError_t error = double_enter(__func__);

    if (error != hipSuccess || event == NULL) {
        return error != hipSuccess ? error : double_error(hipErrorInvalidHandle);
    }
    leave_event(event);
    return hipSuccess;
}

static void run_record(double_operation *operation, double_moment *now)
{
    const event_operation *this = (const event_operation *)operation;
    recordings *shared          = this->event->shared;

    uint32_t *const ticket = &shared->moment[this->ticket % MOMENTS].ticket;

    shared->moment[this->ticket % MOMENTS].clock = now->clock;
    __atomic_store_n(ticket, this->ticket, __ATOMIC_SEQ_CST);
    if (__atomic_load_n(&shared->waiting, __ATOMIC_SEQ_CST) > 0) {
        (void)syscall(SYS_futex, ticket, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
    }
    leave_event(this->event);
}

static bool is_recorded(const recordings *shared, uint32_t ticket)
{
    return ticket == 0 || __atomic_load_n(&shared->moment[ticket % MOMENTS].ticket, __ATOMIC_ACQUIRE) >= ticket;
}

static void wait_for(recordings *shared, uint32_t ticket)
{
    uint32_t *const word = &shared->moment[ticket % MOMENTS].ticket;

    if (is_recorded(shared, ticket)) {
        return;
    }
    (void)__atomic_add_fetch(&shared->waiting, 1, __ATOMIC_SEQ_CST);
    for (uint32_t now; (now = __atomic_load_n(word, __ATOMIC_SEQ_CST)) < ticket;) {
        (void)syscall(SYS_futex, word, FUTEX_WAIT, now, NULL, NULL, 0);
    }
    (void)__atomic_sub_fetch(&shared->waiting, 1, __ATOMIC_SEQ_CST);
}

static void run_wait(double_operation *operation, double_moment *now)
{
    const event_operation *this = (const event_operation *)operation;

    wait_for(this->event->shared, this->ticket);
    double_clock_join(&now->clock, &this->event->shared->moment[this->ticket % MOMENTS].clock);
    leave_event(this->event);
}

static hipError_t enqueue_event(hipStream_t stream, hipEvent_t event, uint32_t ticket,
                                void (*run)(double_operation *, double_moment *))
{
    event_operation one = {.event = event, .ticket = ticket};

    (void)__atomic_add_fetch(&event->users, 1, __ATOMIC_ACQ_REL);
    return double_enqueue(stream, &one.operation, sizeof one, run);
}

hipError_t hipEventRecord(hipEvent_t event, hipStream_t stream)
{
    const hipError_t error = double_enter(__func__);

    if (error != hipSuccess || event == NULL) {
        return error != hipSuccess ? error : double_error(hipErrorInvalidHandle);
    }
    return enqueue_event(stream, event, __atomic_add_fetch(&event->shared->issued, 1, __ATOMIC_ACQ_REL), run_record);
}

/* What has been recorded until now; later recordings are none of its business. */
hipError_t hipStreamWaitEvent(hipStream_t stream, hipEvent_t event, unsigned int flags)
{
    const hipError_t error = double_enter(__func__);

    if (error != hipSuccess || event == NULL || flags != 0) {
        return error != hipSuccess ? error : double_error(hipErrorInvalidHandle);
    }
    const uint32_t ticket = __atomic_load_n(&event->shared->issued, __ATOMIC_ACQUIRE);
    return ticket > 0 ? enqueue_event(stream, event, ticket, run_wait) : hipSuccess;
}

static void host_saw(const recordings *shared, uint32_t ticket)
{
    if (ticket > 0) {
        double_order_host_saw(&shared->moment[ticket % MOMENTS].clock);
    }
}

hipError_t hipEventQuery(hipEvent_t event)
{
    const hipError_t error = double_enter(__func__);

    if (error != hipSuccess || event == NULL) {
        return error != hipSuccess ? error : double_error(hipErrorInvalidHandle);
    }
    const uint32_t ticket = __atomic_load_n(&event->shared->issued, __ATOMIC_ACQUIRE);
    if (!is_recorded(event->shared, ticket)) {
        return hipErrorNotReady;
    }
    host_saw(event->shared, ticket);
    return hipSuccess;
}

hipError_t hipEventSynchronize(hipEvent_t event)
{
    const hipError_t error = double_enter(__func__);

    if (error != hipSuccess || event == NULL) {
        return error != hipSuccess ? error : double_error(hipErrorInvalidHandle);
    }
    const uint32_t ticket = __atomic_load_n(&event->shared->issued, __ATOMIC_ACQUIRE);
    wait_for(event->shared, ticket);
    host_saw(event->shared, ticket);
    return hipSuccess;
}

hipError_t hipIpcGetEventHandle(hipIpcEventHandle_t *handle, hipEvent_t event)
{
    const hipError_t error = double_enter(__func__);

    if (error != hipSuccess || event == NULL || event->shared->identity == 0 || event->file < 0) {
        return error != hipSuccess ? error : double_error(hipErrorInvalidHandle);
    }
    const event_ticket mine = {
        .magic = "event", .process = getpid(), .file = event->file, .identity = event->shared->identity};
    memset(handle, 0, sizeof *handle);
    memcpy(handle, &mine, sizeof mine);
    return hipSuccess;
}

hipError_t hipIpcOpenEventHandle(hipEvent_t *event, hipIpcEventHandle_t handle)
{
    const hipError_t error = double_enter(__func__);
    event_ticket     theirs;
    char             name[64];

    *event = NULL;
    memcpy(&theirs, &handle, sizeof theirs);
    if (error != hipSuccess || strcmp(theirs.magic, "event") != 0 || theirs.process == getpid()) {
        return error != hipSuccess ? error : double_error(hipErrorInvalidHandle);
    }
    (void)snprintf(name, sizeof name, "/proc/%lld/fd/%lld", (long long)theirs.process, (long long)theirs.file);
    const int  file   = getenv("HIP_DOUBLE_NO_IPC") == NULL ? open(name, O_RDWR | O_CLOEXEC) : -1;
    hipEvent_t opened = file >= 0 ? map_event(file) : NULL;
    if (file >= 0) {
        (void)close(file);
    }
    if (opened == NULL) {
        return double_error(hipErrorMapFailed);
    }
    opened->file = -1;
    if (opened->shared->identity != theirs.identity) {
        leave_event(opened);
        return double_error(hipErrorMapFailed);
    }
    *event = opened;
    return hipSuccess;
}
