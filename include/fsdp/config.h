/**
 * @file
 * Settings: each row of one table is a field of fsdp_config and an FSDP_* environment variable.
 *
 * The struct overrides the environment, the environment overrides the default. A variable that begins with FSDP_ and is none
 * of these is warned about, with the nearest known name.
 */
#ifndef FSDP_CONFIG_H
#define FSDP_CONFIG_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "fsdp/export.h"
#include "fsdp/status.h"

/** A field that holds this value is unset: the environment or the default decides. */
#define FSDP_UNSET (-1)

/** Values of fsdp_config::log_level. */
typedef enum fsdp_log_level {
    FSDP_LOG_OFF   = 0,
    FSDP_LOG_ERROR = 1,
    FSDP_LOG_WARN  = 2,
    FSDP_LOG_INFO  = 3,
    FSDP_LOG_DEBUG = 4
} fsdp_log_level;

/** Values of fsdp_config::verify. */
typedef enum fsdp_verify {
    FSDP_VERIFY_OFF  = 0, /**< collectives are compared between ranks, since that rides on their first synchronisation;
                               steps that move no data between ranks are not */
    FSDP_VERIFY_ARGS = 1, /**< such steps are compared too */
    FSDP_VERIFY_FULL = 2  /**< and gathered views are checked: equal on all ranks, and not written to by the caller */
} fsdp_verify;

/** Values of fsdp_config::isa. */
typedef enum fsdp_isa {
    FSDP_ISA_AUTO   = 0, /**< the widest that the processor has */
    FSDP_ISA_SCALAR = 1,
    FSDP_ISA_AVX2   = 2,
    FSDP_ISA_AVX512 = 3,
    FSDP_ISA_NEON   = 4 /**< on 64-bit Arm */
} fsdp_isa;

/** Values of fsdp_config::progress. */
typedef enum fsdp_progress {
    FSDP_PROGRESS_AUTO   = 0, /**< a thread if MPI was started with MPI_THREAD_MULTIPLE, else inline */
    FSDP_PROGRESS_INLINE = 1, /**< operations advance inside calls of the library only; see fsdp/collectives.h */
    FSDP_PROGRESS_THREAD = 2  /**< a thread; an error if MPI does not allow it */
} fsdp_progress;

/** Values of fsdp_config::progress_cpu beside the number of a hardware thread; docs/placement.md says when auto finds one. */
enum {
    FSDP_CPU_AUTO = -2, /**< a core that compute leaves to the progress thread, if there is one; else none */
    FSDP_CPU_NONE = -3  /**< it runs where the rank computes, and naps */
};

/** Values of fsdp_config::cma. */
typedef enum fsdp_cma { FSDP_CMA_AUTO = 0, FSDP_CMA_OFF = 1 } fsdp_cma;

/** Values of fsdp_config::bind; fsdp/topology.h says what is bound. */
typedef enum fsdp_bind {
    FSDP_BIND_AUTO   = 0, /**< if something can be gained; otherwise nothing is bound, and fsdp_binding() says why */
    FSDP_BIND_NONE   = 1, /**< the launcher's and the caller's choices stand */
    FSDP_BIND_STRICT = 2, /**< every rank on its own cores, next to its own GPU; an error if that is impossible */
    FSDP_BIND_DRY    = 3  /**< nothing is bound; fsdp_binding() says what FSDP_BIND_AUTO would bind */
} fsdp_bind;

/** Values of fsdp_config::bind_keep. */
typedef enum fsdp_bind_keep {
    FSDP_BIND_GIVE_BACK = 0, /**< fsdp_finalize() gives the thread its mask and its memory policy back */
    FSDP_BIND_KEEP      = 1  /**< they stay */
} fsdp_bind_keep;

/** Values of fsdp_config::device. */
typedef enum fsdp_device_use {
    FSDP_DEVICE_AUTO = 0, /**< each rank uses its GPU if all ranks have one (fsdp/device.h says which) */
    FSDP_DEVICE_HOST = 1, /**< none is opened, and GPU memory is refused */
    FSDP_DEVICE_GPU  = 2  /**< an error if a rank has none */
} fsdp_device_use;

/** Values of fsdp_config::gpu_aware_mpi; see fsdp_has_gpu_aware_mpi(). */
typedef enum fsdp_gpu_aware {
    FSDP_GPU_AWARE_AUTO = 0, /**< as MPI itself says */
    FSDP_GPU_AWARE_OFF  = 1,
    FSDP_GPU_AWARE_ON   = 2
} fsdp_gpu_aware;

/** Values of fsdp_config::checkpoint_lock; see fsdp/checkpoint.h. */
typedef enum fsdp_checkpoint_lock {
    FSDP_CHECKPOINT_LOCK_AUTO  = 0, /**< flock(2); where that is not to be had, or stays on one host, the file .owner */
    FSDP_CHECKPOINT_LOCK_FLOCK = 1, /**< an error where that is not to be had */
    FSDP_CHECKPOINT_LOCK_OWNER = 2, /**< the file .owner, and flock(2) where it is to be had */
    FSDP_CHECKPOINT_LOCK_NONE  = 3  /**< none: the caller sees to it that one program at a time saves in a folder */
} fsdp_checkpoint_lock;

#define FSDP_ALGORITHM_NAMES "auto|inline|staged|direct|cma|rails|ring|halves"

/**
 * The one table of settings. Columns: field; kind (CHOICE: an int, one of `values` in the order of its enum; SECONDS: an
 * int; BYTES: 64 bits, written with an optional K, M or G; COUNT: an int; CPU: an int, the number of a hardware thread or one
 * of the words in `values`; PATH: a string, which the caller keeps until fsdp_finalize(), NULL if unset); variable; default;
 * whether all ranks must hold the same value; accepted values; help.
 */
#define FSDP_SETTINGS(X)                                                                                               \
    X(log_level, CHOICE, "FSDP_LOG", "warn", 0, "off|error|warn|info|debug", "what is printed to stderr")              \
    X(verify, CHOICE, "FSDP_VERIFY", "args", 1, "off|args|full", "how much ranks check of each other")                 \
    X(timeout_s, SECONDS, "FSDP_TIMEOUT_S", "600", 1, "0 to 86400, 0 waits for ever",                                  \
      "a wait this long becomes an error that names the operation")                                                    \
    X(isa, CHOICE, "FSDP_ISA", "auto", 0, "auto|scalar|avx2|avx512|neon", "instruction set of the host kernels")       \
    X(message_bytes, BYTES, "FSDP_MESSAGE_BYTES", "1G", 1, "16 to 2147483632", "the largest single MPI message")       \
    X(chunk_bytes, BYTES, "FSDP_CHUNK_BYTES", "0", 1, "0 or more, 0 is by the link's speed",                           \
      "pieces that data travels in between nodes")                                                                     \
    X(staging_bytes, BYTES, "FSDP_STAGING_BYTES", "4M", 1, "4096 or more",                                             \
      "memory in which peers' data is staged; half as much again for short operations")                                \
    X(views_in_flight, COUNT, "FSDP_VIEWS_IN_FLIGHT", "2", 1, "1 to 1024",                                             \
      "units of a sharded model that may be open at once")                                                             \
    X(prefetch, COUNT, "FSDP_PREFETCH", "1", 1, "0 to 64",                                                             \
      "units gathered before they are begun; 0: passes wait for what they issue")                                      \
    X(bucket_bytes, BYTES, "FSDP_BUCKET_BYTES", "25M", 1, "1 or more",                                                 \
      "gradients that NO_SHARD reduces together; the first ones sooner, at 1M")                                        \
    X(node_size, COUNT, "FSDP_NODE_SIZE", "0", 1, "0 to 1000000, 0 is as found",                                       \
      "treat every so many ranks of a node as a node")                                                                 \
    X(node_group, COUNT, "FSDP_NODE_GROUP", "0", 1, "0 to 1024, 0 is by caches, 1 is none",                            \
      "ranks of a node that hear each other directly; groups hear of each other")                                      \
    X(shm_dir, PATH, "FSDP_SHM_DIR", "/dev/shm", 0, "a folder", "where shared memory is made")                         \
    X(node_memory, BYTES, "FSDP_NODE_MEMORY", "0", 0, "0 or more, 0 is what is available",                             \
      "memory of a node that a model may take")                                                                        \
    X(cma, CHOICE, "FSDP_CMA", "auto", 1, "auto|off", "whether process_vm_readv is used where it is permitted")        \
    X(progress, CHOICE, "FSDP_PROGRESS", "auto", 1, "auto|inline|thread", "who advances nonblocking operations")       \
    X(progress_cpu, CPU, "FSDP_PROGRESS_CPU", "auto", 0, "auto|none|0 to 4095",                                        \
      "hardware thread that the progress thread has for itself, and never naps on")                                    \
    X(bind, CHOICE, "FSDP_BIND", "auto", 1, "auto|none|strict|dry",                                                    \
      "whether ranks are bound to cores, memory and a GPU")                                                            \
    X(device, CHOICE, "FSDP_DEVICE", "auto", 1, "auto|host|gpu", "whether collectives take memory of the ranks' GPUs") \
    X(gpu_aware_mpi, CHOICE, "FSDP_GPU_AWARE_MPI", "auto", 1, "auto|off|on", "whether MPI is given GPU memory")        \
    X(topology, PATH, "FSDP_TOPOLOGY", "", 0, "a file of hwloc's XML", "a recorded node in place of this one")         \
    X(algo_allgather, CHOICE, "FSDP_ALGO_ALLGATHER", "auto", 1, FSDP_ALGORITHM_NAMES, "comes before the table")        \
    X(algo_reduce_scatter, CHOICE, "FSDP_ALGO_REDUCE_SCATTER", "auto", 1, FSDP_ALGORITHM_NAMES,                        \
      "comes before the table")                                                                                        \
    X(algo_allreduce, CHOICE, "FSDP_ALGO_ALLREDUCE", "auto", 1, FSDP_ALGORITHM_NAMES, "comes before the table")        \
    X(algo_broadcast, CHOICE, "FSDP_ALGO_BROADCAST", "auto", 1, FSDP_ALGORITHM_NAMES, "comes before the table")        \
    X(algo_reduce, CHOICE, "FSDP_ALGO_REDUCE", "auto", 1, FSDP_ALGORITHM_NAMES, "comes before the table")              \
    X(algo_alltoall, CHOICE, "FSDP_ALGO_ALLTOALL", "auto", 1, FSDP_ALGORITHM_NAMES, "comes before the table")          \
    X(tuning_file, PATH, "FSDP_TUNING_FILE", "", 0, "a file written by fsdp-bench --tune",                             \
      "rows that replace the table of algorithms")                                                                     \
    X(checkpoint_lock, CHOICE, "FSDP_CHECKPOINT_LOCK", "auto", 1, "auto|flock|owner|none",                             \
      "what keeps other programs from saving in a folder")                                                             \
    X(trace, PATH, "FSDP_TRACE", "", 0, "the beginning of a file's name",                                              \
      "write what was issued, begun and done when, to NAME.RANK.json")                                                 \
    X(bind_keep, CHOICE, "FSDP_BIND_KEEP", "no", 0, "no|yes", "whether what is bound stays so after fsdp_finalize()")  \
    X(small_bytes, BYTES, "FSDP_SMALL_BYTES", "0", 1, "0 or more, 0 is none",                                          \
      "parameters below this, as they are gathered, are held whole by every rank")                                     \
    X(record, COUNT, "FSDP_RECORD", "1024", 1, "0 to 1048576, 0 is none",                                              \
      "operations that a context remembers, for fsdp-why and fsdp-top")                                                \
    X(record_dir, PATH, "FSDP_RECORD_DIR", "", 0, "a folder",                                                          \
      "where they are written when something ends a context or the process, for fsdp-why")                             \
    X(stall_s, SECONDS, "FSDP_STALL_S", "60", 1, "0 to 86400, 0 is none",                                              \
      "a wait this long is warned about, with who is missing")                                                         \
    X(checkpoint_cache, PATH, "FSDP_CHECKPOINT_CACHE", "/dev/shm", 0, "a folder of the node, or off",                  \
      "where fsdp_checkpoint_cache() keeps states of a run")

#define FSDP_CONFIG_TYPE_CHOICE  int
#define FSDP_CONFIG_TYPE_SECONDS int
#define FSDP_CONFIG_TYPE_COUNT   int
#define FSDP_CONFIG_TYPE_CPU     int
#define FSDP_CONFIG_TYPE_BYTES   int64_t
#define FSDP_CONFIG_TYPE_PATH    const char *

/**
 * Takes a line of the log in place of stderr. Lines above fsdp_config::log_level do not come; what is printed at `error` is the
 * detail of a failure, as fsdp_last_error() has it. Errors that ranks agree on come on the rank that prints them, once.
 *
 * It is called in whatever thread has something to say: those that call the library, the context's progress thread, and the one that
 * writes checkpoints, also several at once. So it must be safe to call from several threads, must return soon, and must call
 * neither the library nor MPI.
 *
 * @param[in] state  fsdp_config::log_state
 * @param[in] rank   in the context's communicator; -1 before fsdp_init() knows it
 * @param[in] text   without the level, the rank or a newline; belongs to the library
 */
typedef void (*fsdp_log_function)(void *state, fsdp_log_level level, int rank, const char *text);

#define FSDP_CONFIG_FIELD(field, kind, variable, fallback, agree, values, help) FSDP_CONFIG_TYPE_##kind field;
/** `size`, the log's function, and one field per row of FSDP_SETTINGS. Call fsdp_config_init(), then set what you want to decide yourself. */
typedef struct fsdp_config {
    size_t            size; /**< BYTES of this struct: fsdp_config_init() sets it */
    fsdp_log_function log;  /**< takes what the context has to say, until fsdp_finalize() returns; NULL: to stderr */
    void             *log_state; /**< handed to it; stays the caller's */
    FSDP_SETTINGS(FSDP_CONFIG_FIELD)
} fsdp_config;
#undef FSDP_CONFIG_FIELD

FSDP_EXTERN_C_BEGIN

/**
 * Sets all fields to FSDP_UNSET, paths to NULL. Local; `config` must not be NULL.
 *
 * fsdp_config_init_size() is for other languages: it sets the first `size` BYTES, as far as the library knows them, and those
 * behind them to zero. `size` is above sizeof(size_t).
 */
FSDP_API void      fsdp_config_init_size(fsdp_config *config, size_t size);
static inline void fsdp_config_init(fsdp_config *config)
{
    fsdp_config_init_size(config, sizeof *config);
}

/**
 * Prints the table of settings: variable, value, accepted values, help. Local.
 *
 * @param[in] ctx   the context whose settings are printed; or NULL for the defaults
 * @param[in] file  an open stream
 * @return FSDP_OK; FSDP_ERR_ARG if `file` is NULL.
 */
FSDP_API fsdp_status fsdp_settings_print(const fsdp_context *ctx, FILE *file);

FSDP_EXTERN_C_END

#endif
