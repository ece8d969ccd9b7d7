/**
 * @file
 * The context: everything the library holds for one duplicated MPI communicator.
 *
 * Several contexts may live at once, on the same or on different communicators. Nothing is kept outside them but a list of
 * those without a progress thread, so that waiting for one advances all (see fsdp/collectives.h), and the mask of cores that
 * the launcher gave the process. The library never exits, aborts, starts or ends MPI, and never touches MPI_COMM_WORLD.
 *
 * Threads: several threads may call one context if MPI was started with MPI_THREAD_SERIALIZED or more. Operations are
 * carried out in the order in which they arrive, which the caller must keep the same on all ranks.
 */
#ifndef FSDP_CONTEXT_H
#define FSDP_CONTEXT_H

#include <stddef.h>

#include "fsdp/config.h"
#include "fsdp/export.h"
#include "fsdp/mpi_header.h"
#include "fsdp/status.h"

/** What memory is used for: the lines of a budget. Name, value, text. */
#define FSDP_MEMORY_LIST(X)                                                                                            \
    X(FSDP_MEMORY_PARAMETERS, 0, "master parameters")                                                                  \
    X(FSDP_MEMORY_GRADIENTS, 1, "gradients")                                                                           \
    X(FSDP_MEMORY_OPTIMIZER, 2, "optimizer state")                                                                     \
    X(FSDP_MEMORY_GATHERED, 3, "gathered views")                                                                       \
    X(FSDP_MEMORY_GRADIENT_VIEWS, 4, "gradient views")                                                                 \
    X(FSDP_MEMORY_STAGING, 5, "staging buffers")                                                                       \
    X(FSDP_MEMORY_BOOKKEEPING, 6, "bookkeeping")                                                                       \
    X(FSDP_MEMORY_BUFFERS, 7, "symmetric buffers")

#define FSDP_MEMORY_ENUMERATOR(name, value, text) name = (value),
typedef enum fsdp_memory_kind { FSDP_MEMORY_LIST(FSDP_MEMORY_ENUMERATOR) } fsdp_memory_kind;
#undef FSDP_MEMORY_ENUMERATOR
#define FSDP_N_MEMORY_KINDS 8

/** BYTES that a context holds on this rank. */
typedef struct fsdp_memory {
    size_t current[FSDP_N_MEMORY_KINDS]; /**< by fsdp_memory_kind */
    size_t current_total;
    size_t peak_total;
    size_t device; /**< of current_total, what is on the rank's GPU */
} fsdp_memory;

FSDP_EXTERN_C_BEGIN

/**
 * Opens a context on a duplicate of `comm`. Collective over `comm`. Blocking.
 * The duplicate returns errors (MPI_ERRORS_RETURN); the error handler of `comm` is left alone. The calling thread may be
 * bound to fewer cores, to memory and to a GPU, as fsdp_config::bind says; see fsdp_binding().
 * In a process that fork() makes later, every call on the context returns FSDP_ERR_STATE, and changes nothing for this one.
 *
 * @param[in]  comm    an intra-communicator, of MPI_Init() or of a session (MPI 4); it may be freed once this has returned
 * @param[in]  config  settings; or NULL for environment and defaults. Copied.
 * @param[out] ctx     the context; the caller releases it with fsdp_finalize(). NULL on failure.
 * @return FSDP_OK;
 *         FSDP_ERR_ARG: a null or inter-communicator, or a setting that is out of range or unreadable: same on all ranks;
 *         FSDP_ERR_STATE: MPI is not running;
 *         FSDP_ERR_MISMATCH: a setting that must agree differs between ranks: same on all ranks;
 *         FSDP_ERR_UNSUPPORTED: this processor lacks the instruction set asked for, or FSDP_BIND_STRICT is impossible: the
 *         detail names a rank and the reason, and nothing is bound; or the program runs another MPI than the library was
 *         built with;
 *         FSDP_ERR_MEMORY, FSDP_ERR_MPI, FSDP_ERR_TIMEOUT. The detail is in fsdp_last_error(NULL).
 */
FSDP_API fsdp_status fsdp_init(MPI_Comm comm, const fsdp_config *config, fsdp_context **ctx);

/** As fsdp_init(), for Fortran: `comm` is Fortran's handle of the communicator, with mpi_f08 its MPI_VAL. */
FSDP_API fsdp_status fsdp_init_f(MPI_Fint comm, const fsdp_config *config, fsdp_context **ctx);

/**
 * Completes what is queued, releases the context and everything opened in it. Collective over the context. Blocking.
 * After FSDP_ERR_TIMEOUT or FSDP_ERR_MPI on this context it is local, and memory that MPI may still write to is not freed.
 * MPI_Finalize() may then wait for ever for a rank that is gone: end the program with MPI_Abort().
 * To be called before MPI_Finalize(), which otherwise completes what is queued, so that only memory is left to be released;
 * and before MPI_Session_finalize() of the session that the communicator is from, which does not wait for the library.
 *
 * @param[in] ctx  an open context, invalid afterwards whatever is returned; or NULL, which does nothing
 * @return FSDP_OK; FSDP_ERR_LEAK: models or requests were still open; they have been released, and a warning names them;
 *         FSDP_ERR_STATE: MPI_Finalize() has been called before;
 *         FSDP_ERR_MPI, FSDP_ERR_TIMEOUT: now or earlier, with fsdp_last_error(NULL).
 */
FSDP_API fsdp_status fsdp_finalize(fsdp_context *ctx);

/** This process's rank in the context's communicator; -1 if `ctx` is NULL. Local. */
FSDP_API int fsdp_rank(const fsdp_context *ctx);

/** The number of ranks in the context's communicator; -1 if `ctx` is NULL. Local. */
FSDP_API int fsdp_size(const fsdp_context *ctx);

/** The number of nodes of the context: groups of ranks that share memory, or as FSDP_NODE_SIZE divides them. Local. */
FSDP_API int fsdp_node_count(const fsdp_context *ctx);

/** The node of this rank: nodes are numbered in the order of their lowest ranks. Local; -1 if `ctx` is NULL. */
FSDP_API int fsdp_node_index(const fsdp_context *ctx);

/** The number of ranks on this rank's node. Local; -1 if `ctx` is NULL. */
FSDP_API int fsdp_node_size(const fsdp_context *ctx);

/** This rank's position among them, in rank order. Local; -1 if `ctx` is NULL. */
FSDP_API int fsdp_node_rank(const fsdp_context *ctx);

/** 1 if the context has a thread that carries out nonblocking operations; see fsdp_config::progress. Local. */
FSDP_API int fsdp_has_progress_thread(const fsdp_context *ctx);

/** Seconds of CPU time that this thread has used so far. Local; 0 without one. */
FSDP_API double fsdp_progress_cpu_seconds(const fsdp_context *ctx);

/**
 * Seconds this rank has spent, since fsdp_init(), in fsdp_wait() and in the blocking calls that wait for one: the part of
 * the communication that no compute hides. Blocking calls that are done at the first look, within about a microsecond per
 * peer, do not read the clock and are not counted. Local; 0 if NULL.
 */
FSDP_API double fsdp_wait_seconds(const fsdp_context *ctx);

/**
 * Seconds of CPU time that the calling threads have used during these waits: carrying operations out, looking for peers,
 * and MPI and the kernel on the way. A wait of less than 20 microseconds counts in full. With the CPU time of the progress
 * thread, this is what communication has cost this process in all, but for issuing operations and fsdp_test(). Local;
 * 0 if NULL.
 */
FSDP_API double fsdp_wait_cpu_seconds(const fsdp_context *ctx);

/**
 * What the context holds on this rank now, and the most it has held. Local.
 * Counts every allocation of the library; what MPI allocates for itself is not known and not counted.
 *
 * @return FSDP_OK; FSDP_ERR_ARG if an argument is NULL.
 */
FSDP_API fsdp_status fsdp_memory_usage(const fsdp_context *ctx, fsdp_memory *memory);

/** The text of a line of memory: "gathered views" and so on; "unknown" for a value that is none. Local. */
FSDP_API const char *fsdp_memory_name(fsdp_memory_kind kind);

/**
 * Writes what this process has recorded of its last operations (FSDP_RECORD) into a folder, one file HOST.RANK.record for
 * each of its contexts, of which further ones have a number in the name: what `fsdp-why FOLDER` reads. A file of that name is
 * replaced. Local; may be called from any thread, while operations are under way too.
 *
 * @param[in] ctx     an open context
 * @param[in] folder  one that is there; NULL: FSDP_RECORD_DIR
 * @return FSDP_OK; FSDP_ERR_ARG if `ctx` is NULL, or there is no folder; FSDP_ERR_STATE if nothing is recorded
 *         (FSDP_RECORD=0); FSDP_ERR_IO: a file cannot be written.
 */
FSDP_API fsdp_status fsdp_record_write(fsdp_context *ctx, const char *folder);

/**
 * Turns each rank's verdict into one verdict for all: the way to stop together when one rank fails. Collective. Blocking.
 *
 * @param[in] ctx     an open context
 * @param[in] status  what this rank has to say; FSDP_OK if nothing is wrong here
 * @param[in] detail  one line for the other ranks to read, or NULL; cut after 200 bytes
 * @return FSDP_OK if every rank passed FSDP_OK; else the code of the lowest rank that did not, and fsdp_last_error(ctx)
 *         names each rank that failed, with its detail. FSDP_ERR_MPI, FSDP_ERR_TIMEOUT.
 */
FSDP_API fsdp_status fsdp_agree(fsdp_context *ctx, fsdp_status status, const char *detail);

FSDP_EXTERN_C_END

#endif
