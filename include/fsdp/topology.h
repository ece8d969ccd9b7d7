/**
 * @file
 * The node that ranks run on, a plan of who runs where on it, and how that plan is carried out.
 *
 * A topology is read from this machine or from a recorded one (hwloc's XML), so that a job can be planned for a machine that
 * one cannot log in to. The plan is a pure function of the node and of what each rank may use: every rank computes the same
 * plan, with its reasons. GPUs are told apart by PCI address, and by ordinal if one address holds several; never by index,
 * which HIP, rocm-smi and PCI each count in their own way.
 *
 *     fsdp_topology_open(NULL, &topology);
 *     node = fsdp_topology_node(topology);
 *     fsdp_plan(node, ranks, n_ranks, places);
 *     fsdp_topology_close(topology);
 */
#ifndef FSDP_TOPOLOGY_H
#define FSDP_TOPOLOGY_H

#include <stddef.h>
#include <stdint.h>

#include "fsdp/export.h"
#include "fsdp/mpi_header.h"
#include "fsdp/status.h"

#define FSDP_MASK_WORDS      64  /**< a mask holds the numbers 0 to 4095 */
#define FSDP_MOST_GPUS       64  /**< the most GPUs of a node */
#define FSDP_ADDRESS_BYTES   16  /**< of a PCI address as text, "0000:c1:00.0" */
#define FSDP_REASON_BYTES    128 /**< of a reason in a place */
#define FSDP_MASK_TEXT_BYTES 256

/** A set of hardware threads, or of NUMA nodes, by the operating system's numbers. */
typedef struct fsdp_mask {
    uint64_t word[FSDP_MASK_WORDS];
} fsdp_mask;

/** A package, NUMA node, last-level cache or core. */
typedef struct fsdp_domain {
    fsdp_mask threads; /**< those that may be used at all: control groups are respected */
    uint64_t  bytes;   /**< of memory or cache; 0 if that is unknown or there is none */
    int       number;  /**< the operating system's; -1: none */
    int       package; /**< index of the one that it is in; -1: unknown, or several */
    int       numa;    /**< likewise */
    int       cache;   /**< likewise */
    int       level;   /**< of a cache: 3; 0 of anything else */
    int       kind;    /**< of a core: index of its kind; 0 of anything else */
} fsdp_domain;

/** Cores of one speed. */
typedef struct fsdp_core_kind {
    char   name[32]; /**< as hwloc has it, "IntelAtom" */
    size_t n_cores;
} fsdp_core_kind;

/** A NUMA node that nothing is planned onto: it stands beside others for the same cores, or is next to none. */
typedef struct fsdp_memory_node {
    int       number; /**< the operating system's */
    uint64_t  bytes;
    char      kind[16]; /**< "HBM", "NVM", "CXL", "GPU memory"; "no cores" if nothing more is known */
    fsdp_mask threads;  /**< that it is next to; empty: none */
    int       numa;     /**< index of the NUMA node beside it; -1: none, or several */
} fsdp_memory_node;

/** A compute GPU of AMD or NVIDIA; a mere console is none. */
typedef struct fsdp_gpu {
    char      address[FSDP_ADDRESS_BYTES];
    int       ordinal; /**< among those with this address: 0, unless a GPU is partitioned */
    int       vendor;  /**< 0x1002 or 0x10de */
    int       device;
    char      name[64]; /**< "" if unknown */
    char      uuid[48]; /**< NVIDIA's, "GPU-029490c8-..."; "" if unknown */
    fsdp_mask threads;  /**< the nearest; empty if the locality is unknown */
    int       package;  /**< index; -1: unknown */
    int       numa;     /**< index; -1: unknown */
    int       smi;      /**< rocm-smi's index; -1: unknown */
    uint64_t  bytes;    /**< of its memory; 0: unknown */
    uint64_t  hive;     /**< of XGMI; 0: unknown or none */
} fsdp_gpu;

/** A network card. */
typedef struct fsdp_nic {
    char      address[FSDP_ADDRESS_BYTES];
    char      name[32];
    int       fabric; /**< 1: made for the traffic of jobs, such as InfiniBand and Slingshot */
    fsdp_mask threads;
    int       package; /**< index; -1: unknown */
    int       numa;    /**< index; -1: unknown */
} fsdp_nic;

/** Values of fsdp_link::type. */
typedef enum fsdp_link_type {
    FSDP_LINK_UNKNOWN = 0,
    FSDP_LINK_PCIE    = 1,
    FSDP_LINK_XGMI    = 2,
    FSDP_LINK_NVLINK  = 3
} fsdp_link_type;

/** From one GPU to another. 0 stands for unknown. */
typedef struct fsdp_link {
    fsdp_link_type type;
    uint64_t       hops;
    uint64_t       weight;        /**< rocm-smi's; less is nearer */
    uint64_t       min_bandwidth; /**< MB per second */
    uint64_t       max_bandwidth;
} fsdp_link;

/** Sources of knowledge about a node. Name, value, text. */
#define FSDP_SOURCE_LIST(X)                                                                                            \
    X(FSDP_SOURCE_HWLOC, 0, "hwloc")                                                                                   \
    X(FSDP_SOURCE_SMI, 1, "rocm-smi")                                                                                  \
    X(FSDP_SOURCE_HIP, 2, "HIP")                                                                                       \
    X(FSDP_SOURCE_CGROUP, 3, "control group")                                                                          \
    X(FSDP_SOURCE_GPUS, 4, "GPUs")                                                                                     \
    X(FSDP_SOURCE_NETWORK, 5, "network")                                                                               \
    X(FSDP_SOURCE_MEMORY, 6, "memory")
#define FSDP_SOURCE_ENUMERATOR(name, value, text) name = (value),
typedef enum fsdp_source_kind { FSDP_SOURCE_LIST(FSDP_SOURCE_ENUMERATOR) } fsdp_source_kind;
#undef FSDP_SOURCE_ENUMERATOR
#define FSDP_N_SOURCES 7

typedef struct fsdp_source {
    int  present; /**< 0: what it would have said is unknown */
    char text[FSDP_REASON_BYTES];
} fsdp_source;

/**
 * A node. Arrays belong to the topology. Indices into them are what `package`, `numa` and `cache` hold. Names are printable
 * ASCII: any other byte of a record is replaced by '?'.
 */
typedef struct fsdp_node {
    char                    name[64]; /**< of the host; "" if a record does not say */
    int                     is_here;  /**< 1: this machine, or a record of it: the plan can be bound */
    fsdp_mask               threads;  /**< all that may be used */
    size_t                  n_packages;
    const fsdp_domain      *packages;
    size_t                  n_numas; /**< those of main memory: one for each hardware thread */
    const fsdp_domain      *numas;
    size_t                  n_caches; /**< of the last level */
    const fsdp_domain      *caches;
    size_t                  n_cores;
    const fsdp_domain      *cores;   /**< neighbours side by side */
    size_t                  n_kinds; /**< of cores; 0: all are alike, as far as is known */
    const fsdp_core_kind   *kinds;   /**< the fastest first */
    size_t                  n_memories;
    const fsdp_memory_node *memories; /**< what is beside the main memory */
    size_t                  n_gpus;
    const fsdp_gpu         *gpus;  /**< by PCI address */
    const fsdp_link        *links; /**< n_gpus x n_gpus, from row to column */
    size_t                  n_nics;
    const fsdp_nic         *nics;
    double      cpu_quota; /**< cores' worth of time that the control group allows; 0: no limit, or unknown */
    fsdp_source sources[FSDP_N_SOURCES]; /**< by fsdp_source_kind */
} fsdp_node;

/** A GPU that a process may use. */
typedef struct fsdp_visible_gpu {
    char address[FSDP_ADDRESS_BYTES];
    int  ordinal;
} fsdp_visible_gpu;

/** What one rank of a node may use, before anything is bound. */
typedef struct fsdp_local_rank {
    int              rank;
    int              n_visible; /**< of `visible`; -1: unknown, any GPU is assumed */
    int              device;    /**< of `visible`: the one it uses, 0 if none has been chosen; -1: unknown, or none */
    int              at_odds;   /**< 1: HIP_VISIBLE_DEVICES names devices that ROCR_VISIBLE_DEVICES leaves out */
    fsdp_mask        threads;   /**< the launcher's mask */
    fsdp_mask        memory;    /**< NUMA nodes, by the system's number, that it may allocate from; empty: any */
    fsdp_visible_gpu visible[FSDP_MOST_GPUS]; /**< in the order in which HIP counts them */
} fsdp_local_rank;

/** How a place falls short of the ideal: one bit each. Name, value, short name, text. */
#define FSDP_DEVIATION_LIST(X)                                                                                         \
    X(FSDP_SHARED_GPU, 1, "shared-gpu", "its GPU serves another rank too")                                             \
    X(FSDP_REMOTE_GPU, 2, "remote-gpu", "its GPU is next to another NUMA node than its cores")                         \
    X(FSDP_NO_GPU, 4, "no-gpu", "the node has GPUs, but this rank may use none")                                       \
    X(FSDP_UNKNOWN_LOCALITY, 8, "unknown-locality", "which cores its GPU is next to is not known")                     \
    X(FSDP_OVERLAPPING_CORES, 16, "overlapping-cores", "another rank runs on some of its cores")                       \
    X(FSDP_CROSSES_CACHE, 32, "crosses-cache", "its cores are on several last-level caches, not all of them its own")  \
    X(FSDP_CROSSES_NUMA, 64, "crosses-numa", "its cores are on several NUMA nodes")                                    \
    X(FSDP_FEW_CORES, 128, "few-cores", "there are more ranks than cores")                                             \
    X(FSDP_OUTSIDE_MACHINE, 256, "outside-machine", "its mask names hardware threads that the machine does not have")  \
    X(FSDP_VISIBLE_AT_ODDS, 512, "visible-at-odds",                                                                    \
      "HIP_VISIBLE_DEVICES names devices that ROCR_VISIBLE_DEVICES leaves out")                                        \
    X(FSDP_MASKED_GPU, 1024, "masked-gpu", "no core next to its GPU is in its mask")                                   \
    X(FSDP_SLOWER_CORES, 2048, "slower-cores", "some of its cores are of a slower kind than others that ranks have")
#define FSDP_DEVIATION_ENUMERATOR(name, value, short_name, text) name = (value),
typedef enum fsdp_deviation { FSDP_DEVIATION_LIST(FSDP_DEVIATION_ENUMERATOR) } fsdp_deviation;
#undef FSDP_DEVIATION_ENUMERATOR

/** Where a rank is to run. */
typedef struct fsdp_place {
    int       gpu;        /**< index into the node's; -1: none */
    int       device;     /**< the same, as HIP numbers it in that process; -1: unknown or none */
    fsdp_mask threads;    /**< within its mask; its mask if it is to be left alone */
    int       numa;       /**< index of the NUMA node for its memory; -1: several or unknown */
    int       nic;        /**< index of the nearest network card; -1: none or unknown */
    int       spare;      /**< hardware thread of a core that no rank has, in its mask and NUMA node; -1: none */
    unsigned  deviations; /**< bits of fsdp_deviation */
    char      gpu_reason[FSDP_REASON_BYTES];
    char      cores_reason[FSDP_REASON_BYTES];
    char      memory_reason[FSDP_REASON_BYTES];
    char      nic_reason[FSDP_REASON_BYTES];
} fsdp_place;

/** The state of a GPU. Unknown fields are negative. */
typedef struct fsdp_gpu_health {
    double used_bytes;
    double total_bytes;
    double busy_percent;
    double clock_mhz;
    double power_watts;
    double temperature_celsius;
} fsdp_gpu_health;

typedef struct fsdp_topology fsdp_topology;

FSDP_EXTERN_C_BEGIN

/**
 * Reads a node. Local. Only errors are printed; fsdp_node::sources says which sources are missing.
 *
 * @param[in]  file      hwloc's XML, version 2; or NULL for the file that FSDP_TOPOLOGY names, else this machine
 * @param[out] topology  released with fsdp_topology_close(); NULL on failure
 * @return FSDP_OK; FSDP_ERR_ARG: no such file, or none that hwloc 2 reads; FSDP_ERR_UNSUPPORTED: a machine with hardware
 *         threads above 4095; FSDP_ERR_MEMORY. The detail is in fsdp_last_error(NULL).
 */
FSDP_API fsdp_status fsdp_topology_open(const char *file, fsdp_topology **topology);

/** Releases a topology and its node. Local; NULL does nothing. */
FSDP_API void fsdp_topology_close(fsdp_topology *topology);

/** The node that was read; valid until fsdp_topology_close(). Local. NULL for NULL. */
FSDP_API const fsdp_node *fsdp_topology_node(const fsdp_topology *topology);

/**
 * Asks rocm-smi for the present state of a GPU. Local.
 * @return FSDP_OK, even if nothing is known; FSDP_ERR_ARG if an argument is NULL or there is no such GPU
 */
FSDP_API fsdp_status fsdp_gpu_health_read(const fsdp_topology *topology, size_t gpu, fsdp_gpu_health *health);

/**
 * What the calling process may use now: its thread's mask, its memory, the GPUs that HIP shows it. Local.
 * @param[out] mine  its `rank` is 0
 * @return FSDP_OK; FSDP_ERR_ARG if `mine` is NULL
 */
FSDP_API fsdp_status fsdp_local_rank_look(fsdp_local_rank *mine);

/**
 * Plans the ranks of one node. Pure and local: the same arguments give the same places, on any machine.
 *
 * GPUs, in this order of importance: none is shared while another that could be used is idle; as many as possible are local;
 * ranks are spread over packages and NUMA nodes; consecutive ranks are neighbours on XGMI or NVLink.
 *
 * Cores: no rank shares any while each could have one of its own. Ranks with the same mask divide it: each is on the NUMA node
 * next to its GPU while that has a core for it, else on idle cores, of the GPU's package first. Without GPUs, or if their
 * locality is unknown, ranks spread over all NUMA nodes, or have several each for themselves. On a NUMA node they have one piece
 * each, along the boundaries of caches if none has less than three quarters of an even share by that. If ranks outnumber cores,
 * those of a NUMA node share it. Cores of a slower kind are for ranks that outnumber the faster ones. A rank with a mask of its
 * own keeps the part that is next to its GPU, or all if there is none.
 *
 * @param[in]  ranks   `n` of them, in rank order, 1 to 4096
 * @param[out] places  `n` of them
 * @return FSDP_OK; FSDP_ERR_ARG: NULL, no ranks, too many, or a rank with no hardware thread on this machine (the detail
 *         names it); FSDP_ERR_MEMORY. After an error `places` is undefined.
 */
FSDP_API fsdp_status fsdp_plan(const fsdp_node *node, const fsdp_local_rank *ranks, size_t n, fsdp_place *places);

/**
 * Describes the present state: each rank on its whole mask and on the GPU that it uses (none if that is unknown), with what is
 * wrong with that. Pure and local; arguments and errors as for fsdp_plan(). Reasons are empty.
 */
FSDP_API fsdp_status fsdp_plan_none(const fsdp_node *node, const fsdp_local_rank *ranks, size_t n, fsdp_place *places);

/**
 * One line that says what fsdp_init() has bound the calling thread to, and why; or why it has bound nothing. Local; "" for
 * NULL; valid as long as the context.
 *
 * Under FSDP_BIND_AUTO nothing is bound if nothing can be gained (one NUMA node, one last-level cache, no GPU), if the context
 * has only some of the processes that the launcher started on the node, or if FSDP_TOPOLOGY is a record of another machine.
 * Cores are left alone if a control group allows less time than theirs, GPUs if the caller has selected
 * another than HIP's first, memory if a policy is set. Cores and memory are left alone on a rank whose program binds its threads
 * itself: the mask of the calling thread is not the one that the process had when the library was loaded, or OMP_PROC_BIND,
 * OMP_PLACES, GOMP_CPU_AFFINITY or KMP_AFFINITY is set. Masks are only ever narrowed. No thread is bound that exists already, but the
 * calling one; threads that it starts afterwards inherit its mask.
 *
 * fsdp_finalize() of the context that has bound gives the thread its mask back, and, called in that thread, its memory policy,
 * unless somebody has changed them since, or FSDP_BIND_KEEP is `yes`. The GPU stays selected. FSDP_BIND_DRY binds nothing, and the line
 * says what FSDP_BIND_AUTO would bind.
 */
FSDP_API const char *fsdp_binding(const fsdp_context *ctx);

/**
 * Makes a communicator of the same processes whose ranks are consecutive on each node: nodes in the order of their lowest
 * ranks, ranks of a node in their old order. For jobs placed round-robin. Collective over `comm`. Blocking.
 *
 * @param[out] ordered  the caller frees it with MPI_Comm_free(); MPI_COMM_NULL on failure
 * @return FSDP_OK; FSDP_ERR_ARG: NULL, a null communicator; FSDP_ERR_MEMORY; FSDP_ERR_MPI; FSDP_ERR_TIMEOUT, after FSDP_TIMEOUT_S
 */
FSDP_API fsdp_status fsdp_comm_order_by_node(MPI_Comm comm, MPI_Comm *ordered);

/** Writes a mask as "0-7,64-71"; "none" if it is empty; cut after `size` BYTES, ending in "...". Local. */
FSDP_API void fsdp_mask_text(const fsdp_mask *mask, char *text, size_t size);

/** Reads a list of that form. Local. @return FSDP_OK; FSDP_ERR_ARG: NULL, not a list, a number above 4095 */
FSDP_API fsdp_status fsdp_mask_read(const char *text, fsdp_mask *mask);

/** The number of numbers in a mask. Local. */
FSDP_API int fsdp_mask_count(const fsdp_mask *mask);

/** Whether a mask holds a number; 0 if it is out of range. Local. */
FSDP_API int fsdp_mask_has(const fsdp_mask *mask, int number);

/** The short name of one deviation, "shared-gpu", and its text; "unknown" for a value that is none. Local. */
FSDP_API const char *fsdp_deviation_name(fsdp_deviation deviation);
FSDP_API const char *fsdp_deviation_text(fsdp_deviation deviation);

/** The name of a source, "rocm-smi"; "unknown" for a value that is none. Local. */
FSDP_API const char *fsdp_source_name(fsdp_source_kind source);

FSDP_EXTERN_C_END

#endif
