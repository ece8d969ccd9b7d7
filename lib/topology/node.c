#include "lib/topology/node.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "lib/topology/mask.h"

static const char *const SOURCE_NAMES[] = {
#define SOURCE_NAME(name, value, text) [value] = (text),
    FSDP_SOURCE_LIST(SOURCE_NAME)
#undef SOURCE_NAME
};

const char *fsdp_source_name(fsdp_source_kind source)
{
    return (int)source >= 0 && (int)source < FSDP_N_SOURCES ? SOURCE_NAMES[source] : "unknown";
}

const char *fsdp_deviation_name(fsdp_deviation deviation)
{
    switch (deviation) {
#define DEVIATION_CASE(name, value, short_name, text)                                                                  \
    case name:                                                                                                         \
        return short_name;
        FSDP_DEVIATION_LIST(DEVIATION_CASE)
#undef DEVIATION_CASE
    }
    return "unknown";
}

const char *fsdp_deviation_text(fsdp_deviation deviation)
{
    switch (deviation) {
#define DEVIATION_CASE(name, value, short_name, text)                                                                  \
    case name:                                                                                                         \
        return text;
        FSDP_DEVIATION_LIST(DEVIATION_CASE)
#undef DEVIATION_CASE
    }
    return "unknown";
}

void fsdpi_node_source(fsdp_node *node, fsdp_source_kind source, bool present, const char *format, ...)
{
    va_list arguments;

    node->sources[source].present = present;
    va_start(arguments, format);
    (void)vsnprintf(node->sources[source].text, sizeof node->sources[source].text, format, arguments);
    va_end(arguments);
}

void fsdpi_node_copy_text(char *to, size_t size, const char *from)
{
    size_t n = 0;

    for (; from[n] != '\0' && n + 1 < size; n++) {
        to[n] = from[n];
        if (from[n] < ' ' || from[n] > '~') {
            to[n] = '?';
        }
    }
    to[n] = '\0';
}

int fsdpi_node_gpu(const fsdp_node *node, const char *address, int ordinal)
{
    for (size_t g = 0; g < node->n_gpus; g++) {
        if (node->gpus[g].ordinal == ordinal && strcmp(node->gpus[g].address, address) == 0) {
            return (int)g;
        }
    }
    return -1;
}

int fsdpi_domain_of(const fsdp_domain *domains, size_t n, const fsdp_mask *threads)
{
    for (size_t i = 0; i < n && !fsdpi_mask_is_empty(threads); i++) {
        if (fsdpi_mask_within(threads, &domains[i].threads)) {
            return (int)i;
        }
    }
    return -1;
}

/* Parts of one GPU are where it is: what is known of the first holds for the others. */
int fsdpi_node_add_gpu(fsdp_topology *topology, const char *address, int ordinal)
{
    fsdp_node *node  = &topology->node;
    const int  first = ordinal > 0 ? fsdpi_node_gpu(node, address, 0) : -1;
    size_t     at    = node->n_gpus;
    fsdp_gpu   made  = {.ordinal = ordinal, .package = -1, .numa = -1, .smi = -1};

    if (node->n_gpus == FSDP_MOST_GPUS) {
        return -1;
    }
    if (first >= 0) {
        made         = topology->gpus[first];
        made.ordinal = ordinal;
        made.smi     = -1;
    }
    (void)snprintf(made.address, sizeof made.address, "%s", address);
    while (at > 0 &&
           (strcmp(topology->gpus[at - 1].address, address) > 0 ||
            (strcmp(topology->gpus[at - 1].address, address) == 0 && topology->gpus[at - 1].ordinal > ordinal))) {
        topology->gpus[at] = topology->gpus[at - 1];
        memcpy(topology->peers[at], topology->peers[at - 1], sizeof topology->peers[at]);
        at--;
    }
    topology->gpus[at]     = made;
    topology->peers[at][0] = '\0';
    node->n_gpus++;
    return (int)at;
}
