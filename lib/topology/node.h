/**
 * @file
 * How a node is put together: hwloc first, then what rocm-smi, HIP and the control group add.
 */
#ifndef FSDPI_TOPOLOGY_NODE_H
#define FSDPI_TOPOLOGY_NODE_H

#include <stdbool.h>

#include "fsdp/topology.h"
#include "lib/topology/rocm_smi.h"

enum { FSDPI_MOST_NICS = 64, FSDPI_MOST_MEMORIES = 64, FSDPI_MOST_KINDS = 8 };

struct fsdp_topology {
    fsdp_node        node; /* its arrays are these */
    fsdp_domain     *domains[4];
    fsdp_gpu         gpus[FSDP_MOST_GPUS];
    fsdp_link        links[FSDP_MOST_GPUS * FSDP_MOST_GPUS]; /* n_gpus x n_gpus, once all GPUs are known */
    fsdp_nic         nics[FSDPI_MOST_NICS];
    fsdp_memory_node memories[FSDPI_MOST_MEMORIES];
    fsdp_core_kind   kinds[FSDPI_MOST_KINDS];
    fsdpi_smi       *smi;                        /* NULL: not there, or the node is not this machine */
    void            *hwloc;                      /* open until the links have been read */
    char             peers[FSDP_MOST_GPUS][256]; /* XGMIPeers of each, as hwloc has them, until they are links */
};

/** Fills in all that hwloc knows but the links. @param[in] file  XML; NULL: this machine */
fsdp_status fsdpi_node_read(fsdp_topology *topology, const char *file);

/** Fills in the links that hwloc knows, once all GPUs are there, and closes hwloc. */
void fsdpi_node_read_links(fsdp_topology *topology);

/** Index of a GPU; -1 if there is none such. */
int fsdpi_node_gpu(const fsdp_node *node, const char *address, int ordinal);

/** Adds a GPU that hwloc does not show, with all that is unknown; its index, or -1 where there is no room. */
int fsdpi_node_add_gpu(fsdp_topology *topology, const char *address, int ordinal);

/** Says what a source has or why it has nothing. */
void fsdpi_node_source(fsdp_node *node, fsdp_source_kind source, bool present, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

/** Copies what a record says: one line of printable ASCII, with '?' for any other byte, cut after `size` BYTES. */
void fsdpi_node_copy_text(char *to, size_t size, const char *from);

/** Index of the domain that holds all of these threads; -1: none does, or there are no threads. */
int fsdpi_domain_of(const fsdp_domain *domains, size_t n, const fsdp_mask *threads);

#endif
