/*
 * Plans ranks on a machine that one cannot log in to, from hwloc's record of it: plan node.xml 8
 */
#include <stdio.h>
#include <stdlib.h>

#include <fsdp/topology.h>

enum { MOST_RANKS = 64 };

/* begin plan */
static int print_plan(const char *file, size_t n)
{
    static fsdp_local_rank ranks[MOST_RANKS];
    static fsdp_place      places[MOST_RANKS];
    fsdp_topology         *topology;
    const fsdp_node       *node;

    if (n > MOST_RANKS || fsdp_topology_open(file, &topology) != FSDP_OK) {
        return EXIT_FAILURE;
    }
    node = fsdp_topology_node(topology);
    for (size_t r = 0; r < n; r++) {
        ranks[r] = (fsdp_local_rank){.rank = (int)r, .n_visible = -1, .device = -1, .threads = node->threads};
    }
    if (fsdp_plan(node, ranks, n, places) != FSDP_OK) { /* pure: the same arguments give the same places anywhere */
        fsdp_topology_close(topology);
        return EXIT_FAILURE;
    }
    for (size_t r = 0; r < n; r++) {
        char text[FSDP_MASK_TEXT_BYTES];

        fsdp_mask_text(&places[r].threads, text, sizeof text);
        printf("rank %zu: GPU %d, threads %s: %s\n", r, places[r].gpu, text, places[r].cores_reason);
    }
    fsdp_topology_close(topology);
    return EXIT_SUCCESS;
}
/* end plan */

int main(int argc, char **argv)
{
    return argc == 3 ? print_plan(argv[1], (size_t)strtoul(argv[2], NULL, 10)) : EXIT_FAILURE;
}
