/**
 * @file
 * The record of a context: what each of its ranks has done last and is doing now, as it lies in memory and in files.
 *
 * In memory it is an unnamed memfd, "fsdp-record", one per node and context, which all ranks of the node map:
 *
 *     a header, FSDPI_RECORDED_HEAD_BYTES
 *     a section of each rank of the node, in rank order: its head, FSDPI_RECORDED_HEAD_BYTES, and a ring of entries
 *
 * A file, HOST.RANK.record, is the header, with what is known when it is written, the one section of that rank, and a
 * trailer, without which it is only a part of a file. Further contexts of a process write HOST.RANK.N.record.
 *
 * All numbers are little-endian, texts end with NUL; whoever changes anything here raises FSDPI_RECORDED_VERSION. Readers are
 * other processes, which may find a rank stopped in the middle of a store: every member that changes is a word of 64 bits,
 * stored at once, and an entry begins with the number of its version, odd while the entry is given to another operation.
 *
 * Needs nothing but C, so that programs without MPI read it.
 */
#ifndef FSDPI_RECORD_LAYOUT_H
#define FSDPI_RECORD_LAYOUT_H

#include <stdatomic.h>
#include <stdint.h>

#define FSDPI_RECORDED_MAGIC   "FSDPREC\n"
#define FSDPI_RECORDED_TRAILER "FSDPEND\n"
#define FSDPI_RECORDED_NAME    "fsdp-record" /* of the memfd; /proc/PID/fd shows "/memfd:fsdp-record (deleted)" */
#define FSDPI_RECORDED_SUFFIX  ".record"
#define FSDPI_RECORDED_PART    ".record.part" /* while it is written */

enum {
    FSDPI_RECORDED_VERSION      = 1,
    FSDPI_RECORDED_HEAD_BYTES   = 4096,
    FSDPI_RECORDED_HOST_BYTES   = 64,
    FSDPI_RECORDED_JOB_BYTES    = 96,
    FSDPI_RECORDED_NAMES        = 48,
    FSDPI_RECORDED_NAME_BYTES   = 40,
    FSDPI_RECORDED_WORDS        = 16,
    FSDPI_RECORDED_LABEL_BYTES  = 48,
    FSDPI_RECORDED_REASON_BYTES = 1024
};

/** What its stamps count. */
typedef enum fsdpi_recorded_clock {
    FSDPI_CLOCK_MONOTONIC = 0, /* nanoseconds of the system's monotonic clock */
    FSDPI_CLOCK_TSC = 1 /* the processor's time-stamp counter, where it is the same on all cores and never stops */
} fsdpi_recorded_clock;

/** One moment by three clocks. */
typedef struct fsdpi_recorded_moment {
    uint64_t ticks;     /* as stamps count */
    uint64_t monotonic; /* NANOSECONDS; since the host has booted, and the same for all its processes */
    uint64_t real;      /* NANOSECONDS since 1970 */
} fsdpi_recorded_moment;

/** Why a file has been written. */
typedef enum fsdpi_recorded_cause {
    FSDPI_CAUSE_NONE,    /* it is memory */
    FSDPI_CAUSE_ASKED,   /* fsdp_record_write(), or fsdp-why --save */
    FSDPI_CAUSE_TIMEOUT, /* an operation has been given up */
    FSDPI_CAUSE_FAILED,  /* the context can only be finalized, or ranks made different calls */
    FSDPI_CAUSE_SIGNAL   /* `signal` */
} fsdpi_recorded_cause;

typedef struct fsdpi_recorded_header {
    char                  magic[8];
    uint32_t              version;
    uint32_t              section_bytes;
    uint32_t              entries;    /* in a ring: a power of two */
    uint32_t              sections;   /* behind this header */
    uint32_t              node_ranks; /* ranks of the context on this node */
    uint32_t              size;       /* ranks of the context */
    uint32_t              nodes;      /* nodes of the context */
    uint32_t              node;       /* this one's number */
    uint32_t              clock;      /* an fsdpi_recorded_clock */
    int32_t               timeout_s;  /* FSDP_TIMEOUT_S */
    uint64_t              id;         /* of the context: drawn by its rank 0, the same in all of its records */
    fsdpi_recorded_moment opened;
    char                  job[FSDPI_RECORDED_JOB_BYTES];   /* what the launcher calls it; "" */
    char                  host[FSDPI_RECORDED_HOST_BYTES]; /* without its domain */
    char                  boot[40];                        /* the host's boot id */
    /* Of a file: */
    fsdpi_recorded_moment written;
    uint32_t              cause;      /* an fsdpi_recorded_cause */
    int32_t               signal;     /* or 0 */
    int32_t               written_by; /* the rank that has */
    uint32_t              process; /* the letter of /proc/PID/stat for the section's process then; 0: there was none */
    int64_t               oom_kills; /* of its control group then; -1: not known */
    char                  reason[FSDPI_RECORDED_REASON_BYTES];
} fsdpi_recorded_header;

/** What a rank is doing: the upper byte of `doing`, over the number of an operation. */
typedef enum fsdpi_recorded_doing {
    FSDPI_DOING_USER,    /* the program's own work */
    FSDPI_DOING_WAITING, /* in a call that waits for the operation */
    FSDPI_DOING_LEFT     /* it has finalized the context */
} fsdpi_recorded_doing;

enum { FSDPI_DOING_SHIFT = 56 };

/** The progress thread of a rank. */
typedef enum fsdpi_recorded_thread {
    FSDPI_THREAD_NONE,
    FSDPI_THREAD_ASLEEP,
    FSDPI_THREAD_AT_WORK
} fsdpi_recorded_thread;

/** The head of a rank's section. */
typedef struct fsdpi_recorded_section {
    int32_t  rank;       /* in the context; -1 until the rest is there */
    int32_t  shown_rank; /* what messages call it: of a group of ranks its number in the whole */
    int32_t  pid;
    uint32_t number;    /* of the context in its process, from 1 */
    int32_t  file_rank; /* in the name of its file: its number in the launcher's job, where that is known */
    uint64_t started;   /* when the process was, in clock ticks since the host has booted */
    int64_t  oom_kills; /* of its control group, when the context was opened; -1: not known */
    char     program[64];
    char     group[512]; /* the folder of its memory control group; "" */
    _Alignas(64) _Atomic uint64_t doing;
    _Atomic uint64_t since;  /* ticks */
    _Atomic uint64_t waited; /* NANOSECONDS in all, in calls that wait */
    _Atomic uint64_t issued; /* operations so far */
    _Atomic uint64_t ended;  /* likewise */
    _Atomic uint64_t thread; /* an fsdpi_recorded_thread */
    _Atomic uint64_t taken;  /* whoever writes it to a file on its own account: one more than the rank; 0: nobody yet */
    _Atomic uint64_t n_names;
    char             names[FSDPI_RECORDED_NAMES][FSDPI_RECORDED_NAME_BYTES]; /* the first is "" */
} fsdpi_recorded_section;

_Static_assert(sizeof(fsdpi_recorded_header) <= FSDPI_RECORDED_HEAD_BYTES, "a header fits into its room");
_Static_assert(sizeof(fsdpi_recorded_section) <= FSDPI_RECORDED_HEAD_BYTES, "the head of a section fits into its room");

/** How far an operation is. */
typedef enum fsdpi_recorded_state {
    FSDPI_RECORDED_ISSUED,   /* queued behind others */
    FSDPI_RECORDED_AGREEING, /* ranks tell each other what they have called */
    FSDPI_RECORDED_MOVING,   /* its data moves */
    FSDPI_RECORDED_DONE,
    FSDPI_RECORDED_FAILED
} fsdpi_recorded_state;

/** The words of an entry. Operation n of a context is in entry n modulo their number. */
enum {
    FSDPI_WORD_VERSION,  /* odd while the others are changed */
    FSDPI_WORD_SEQUENCE, /* one more than the operation's number; 0: none yet */
    FSDPI_WORD_ISSUED,   /* ticks; and when it was begun and has ended, 0: not yet */
    FSDPI_WORD_BEGUN,
    FSDPI_WORD_ENDED,
    FSDPI_WORD_COUNT,      /* ELEMENTS */
    FSDPI_WORD_BYTES,      /* of this rank's larger buffer */
    FSDPI_WORD_MARKS,      /* eight bytes, from the lowest: see below */
    FSDPI_WORD_LABEL,      /* six words of text, NUL at the end: what it was done for, as the name of a unit */
    FSDPI_WORD_ROOT  = 14, /* one more than the root; 0: it has none */
    FSDPI_WORD_SPARE = 15
};

/** Bytes of FSDPI_WORD_MARKS. Names are numbers in the section's table. */
enum {
    FSDPI_MARK_STATE,      /* an fsdpi_recorded_state */
    FSDPI_MARK_LANE,       /* 0: short, 1: long */
    FSDPI_MARK_COLLECTIVE, /* a name: "allgather", or "agreement" */
    FSDPI_MARK_CALL,       /* a name: the function that the program has called, as "fsdp_unit_begin_backward" */
    FSDPI_MARK_ALGORITHM,  /* a name */
    FSDPI_MARK_DTYPE,      /* one more than an fsdp_dtype; 0: none */
    FSDPI_MARK_OP,         /* one more than an fsdp_redop; 0: none */
    FSDPI_MARK_STATUS      /* an fsdp_status, where it has failed */
};

/** The end of a file. */
typedef struct fsdpi_recorded_trailer {
    char     magic[8];
    uint64_t bytes; /* of the file, this included */
} fsdpi_recorded_trailer;

#endif
