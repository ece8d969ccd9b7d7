/**
 * @file
 * The flight recorder of a context: keeps its last operations, and what this rank is doing, where others can read it while the
 * process hangs, is stopped, or is gone. See lib/record/layout.h for where.
 *
 * What concerns one operation is written by one thread at a time; nobody is waited for, nothing is allocated, no call is made
 * to the system but for the time where there is no steady counter. With FSDP_RECORD=0 all of it does nothing.
 */
#ifndef FSDPI_RECORDER_H
#define FSDPI_RECORDER_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/core.h"
#include "lib/base/lock.h"
#include "lib/node/nodes.h"
#include "lib/record/layout.h"
#include "lib/record/ticks.h"

enum { FSDPI_NAMES_HASHED = 128 }; /* a power of two, and more than FSDPI_RECORDED_NAMES, so that some stay free */

/** Names, which are constants of the program, by their addresses. */
typedef struct fsdpi_recorder_names {
    _Atomic(const char *) keys[FSDPI_NAMES_HASHED];
    _Atomic uint8_t       numbers[FSDPI_NAMES_HASHED];
    int                   n;    /* of them are taken */
    fsdpi_lock            lock; /* over adding one */
} fsdpi_recorder_names;

typedef struct fsdpi_recorder {
    fsdpi_recorded_section *section; /* of this rank; NULL: nothing is recorded */
    _Atomic uint64_t       *entries; /* behind it */
    uint64_t                mask;    /* of a number: its entry */
    uint32_t                clock;
    fsdpi_recorder_names    names;
    unsigned char          *map; /* the header, and the sections of the node */
    size_t                  bytes;
    int                     file;     /* one more than the descriptor of the memfd, which stays open; 0: none */
    int                     position; /* of this rank among the sections */
    int                     dump;     /* see lib/record/dump.h; -1: none */
    const fsdpi_core       *core;
    const fsdpi_nodes      *nodes;
} fsdpi_recorder;

/** How many operations are kept where FSDP_RECORD is `operations`: the next power of two. */
size_t fsdpi_recorder_entries(int operations);

/** BYTES of bookkeeping of a recorder: this rank's section, and the header, which is there once per node. */
size_t fsdpi_recorder_bookkeeping(int operations);

/**
 * Makes the record of the node and counts this rank's part. Collective. A rank that cannot reach the node's memory, as one in
 * a PID namespace of its own, gets one for itself; where there is no memory at all, nothing is recorded, which is warned about.
 * @return FSDP_OK; FSDP_ERR_MPI, FSDP_ERR_TIMEOUT; FSDP_ERR_ARG, for the agreement to print: FSDP_RECORD_DIR cannot be used
 */
fsdp_status fsdpi_recorder_open(fsdpi_recorder *recorder, fsdpi_core *core, const fsdpi_nodes *nodes);
void        fsdpi_recorder_close(fsdpi_recorder *recorder);

/** What errors call this rank, where that is another number. */
void fsdpi_recorder_show_rank(const fsdpi_recorder *recorder, int rank);

/** In a process that fork() has made: the record is its parent's. */
void fsdpi_recorder_forget(fsdpi_recorder *recorder);

static inline fsdpi_recorded_header *fsdpi_recorder_header(const fsdpi_recorder *recorder)
{
    return (fsdpi_recorded_header *)(void *)recorder->map;
}

/** The section of a position. */
static inline fsdpi_recorded_section *fsdpi_recorder_section(const fsdpi_recorder *recorder, int position)
{
    return (fsdpi_recorded_section *)(void *)(recorder->map + FSDPI_RECORDED_HEAD_BYTES +
                                              (size_t)position * fsdpi_recorder_header(recorder)->section_bytes);
}

/** An operation that is issued. */
typedef struct fsdpi_recorder_call {
    uint64_t    sequence;
    const char *collective; /* constants of the program, which stay where they are */
    const char *call;
    const char *label; /* or NULL */
    uint64_t    count, bytes;
    int         dtype, op, root; /* -1: none */
    uint64_t   *marks;           /* what stands for its names and types, found out where that is 0 */
} fsdpi_recorder_call;

/** The number of a constant text in the section's table; 0 where that is full. */
uint8_t fsdpi_recorder_name(fsdpi_recorder *recorder, const char *name);

/**
 * `begun`: ranks agree on it already; `waits`: its caller does nothing else; `beside`: another thread waits, and what this one
 * does is not told. Operations with higher numbers may be in the record already.
 */
void fsdpi_recorder_issue(fsdpi_recorder *recorder, const fsdpi_recorder_call *call, bool begun, bool waits,
                          bool beside);

/**
 * Ranks begin to agree on it; its data begins to move, by that algorithm; it has ended, by that one or, if NULL, without any, at
 * fsdpi_ticks() `now`.
 */
void fsdpi_recorder_begin(fsdpi_recorder *recorder, uint64_t sequence);
void fsdpi_recorder_move(fsdpi_recorder *recorder, uint64_t sequence, const char *algorithm, bool is_long);
void fsdpi_recorder_end(fsdpi_recorder *recorder, uint64_t sequence, const char *algorithm, fsdp_status status,
                        uint64_t now);

/** When it ended, in the recorder's ticks; 0: not yet, or it is no longer in the record. */
uint64_t fsdpi_recorder_ended(const fsdpi_recorder *recorder, uint64_t sequence);

/** The program waits for an operation; it goes on with its own work since that has ended, or since now. */
void fsdpi_recorder_wait(fsdpi_recorder *recorder, uint64_t sequence);
void fsdpi_recorder_go_on(fsdpi_recorder *recorder, uint64_t sequence);

/** How long it has waited in all. */
static inline void fsdpi_recorder_waited(const fsdpi_recorder *recorder, double seconds)
{
    if (recorder->section != NULL) {
        atomic_store_explicit(&recorder->section->waited, (uint64_t)(seconds * 1e9), memory_order_relaxed);
    }
}

static inline void fsdpi_recorder_thread(const fsdpi_recorder *recorder, fsdpi_recorded_thread thread)
{
    if (recorder->section != NULL) {
        atomic_store_explicit(&recorder->section->thread, (uint64_t)thread, memory_order_relaxed);
    }
}

#endif
