/**
 * @file
 * A double of the HIP runtime, for tests on machines without a GPU. It does what HIP promises and no more: what HIP leaves
 * open is done in the way that finds most mistakes.
 *
 *   - Device memory faults when the host touches it: the pointer leads to pages without access, and only streams, which
 *     are threads, know where the bytes really are.
 *   - Each operation in a stream is delayed by some random time, and streams know of each other only through events. The
 *     default stream is one like the others.
 *   - Every access of a stream to device or pinned memory is held against those before it, of all processes of the job: two
 *     of which one writes, without an order between them that events or waits of a host have made, end the program. What a
 *     host has seen completed counts as known to all hosts of the job from then on; that leaves out what MPI would tell one
 *     host of another, and can hide a mistake between hosts, never one between streams.
 *   - Misuse ends the program: a kernel beyond the end of an allocation, or without peer access, or in pageable host memory;
 *     memory freed while a peer has it open; a stream destroyed with work in it; memory of a peer closed
 *     while a stream still uses it.
 *
 * Settings, in the environment:
 *   HIP_DOUBLE_GPUS      devices; default 1
 *   HIP_DOUBLE_MEMORY    BYTES of each; default 1 GiB
 *   HIP_DOUBLE_DELAY_US  the longest delay before an operation, of which one in four has one; default 100
 *   HIP_DOUBLE_SEED      of delays; default 1
 *   HIP_DOUBLE_HOLD_MS   copies from and to pageable memory begin when a host asks after their stream, or after so long, in
 *                        which a host that does not ask may free that memory; default 0
 *   HIP_DOUBLE_COPY_GBPS copies between device and host take as long as with so many 1e9 bytes per second; default: as they do
 *   HIP_DOUBLE_FAIL      "hipMalloc:3=2,hipMemcpyAsync:1=999": the third hipMalloc() fails with error 2, and so on
 *   HIP_DOUBLE_JOB       of the shared memory of a job, as job.h sets it; default: each process is a job of its own
 *   HIP_DOUBLE_NO_IPC    set: opening another process's memory fails, as in containers without a shared namespace
 */
#ifndef FSDP_TESTS_DOUBLES_HIP_DOUBLE_H
#define FSDP_TESTS_DOUBLES_HIP_DOUBLE_H

#include <hip/hip_runtime_api.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* ---- for tests --------------------------------------------------------------------------------------------------- */

/** Calls this instead of ending the program, for tests of the double itself; NULL: ends it again. */
void hip_double_on_mistake(void (*told)(const char *what));

/** As HIP_DOUBLE_FAIL, from now on: the `n`th call from here, from 1; 0 takes it back. */
void hip_double_fail(const char *function, int n, hipError_t error);

/* ---- between its parts ------------------------------------------------------------------------------------------- */

enum { DOUBLE_STREAMS = 256, DOUBLE_DEVICES = 16 };

/** What is known to have been done: of each stream of the job, its operations up to this one. */
typedef struct double_clock {
    uint32_t done[DOUBLE_STREAMS];
} double_clock;

/** An allocation, or a peer's that has been opened. */
typedef struct double_memory double_memory;

/** One access of an operation. */
typedef struct double_access {
    double_memory *memory;
    size_t         begin, end;
    bool           writes;
} double_access;

void double_mistake(const char *format, ...) __attribute__((format(printf, 1, 2)));

/** hipSuccess, or what the call of this name is to fail with; remembered for hipGetLastError(). */
hipError_t double_enter(const char *function);
hipError_t double_error(hipError_t error);

long long double_setting(const char *name, long long otherwise);

int  double_device(void);
int  double_device_count(void);
bool double_peer_enabled(int device, int peer);

/** The allocation that an address is in; NULL: of none. */
double_memory *double_memory_of(const void *address);
int            double_memory_device(const double_memory *memory);
bool           double_memory_is_imported(const double_memory *memory);

/** Where the bytes at an address are. `offset`: of it in the allocation. Fails as a mistake if they are not all in it. */
void *double_memory_view(const double_memory *memory, const void *address, size_t bytes, size_t *offset);

/** Holds an access against those before it, and remembers it. */
void double_order_access(const double_access *access, unsigned stream, const double_clock *known);

void double_clock_join(double_clock *clock, const double_clock *other);

/** Takes this process into its job; whatever needs that does it too. */
void double_order_join(void);

/**
 * A number for a stream, the same one for no other in the job, and of its operations the one from which it counts on: that of
 * a stream that is no more, of which all is done, is used again.
 */
unsigned double_order_stream(uint32_t *done);
void     double_order_stream_ended(unsigned stream, uint32_t done);

/** What hosts have seen completed; and more of it. */
void double_order_hosts(double_clock *known);
void double_order_host_saw(const double_clock *seen);

/** Waits until all streams of this process are idle; and whether one of them has used that memory, which no host knew. */
void double_streams_idle(void);
bool double_streams_use(const double_memory *memory);

/** Whether a stream has used that memory since hosts have last seen what it has done. */
bool double_order_uses(const double_memory *memory, unsigned stream);

/* Of an allocation, what it needs to be tracked; lies behind its bytes, in memory that peers share. */
typedef struct double_shadow double_shadow;
size_t                       double_shadow_bytes(void);
void                         double_shadow_open(double_shadow *shadow);
double_shadow               *double_memory_shadow(const double_memory *memory);

#endif
