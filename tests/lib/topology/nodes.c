#include "tests/lib/topology/nodes.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/support/unit_test.h"

const char *node_file(const char *name)
{
    static char path[1024];

    (void)snprintf(path, sizeof path, "%s/%s", FSDP_TEST_NODES, name);
    return path;
}

fsdp_topology *open_node(const char *name)
{
    fsdp_topology *topology;

    assert_int_equal(FSDP_OK, fsdp_topology_open(name[0] == '/' ? name : node_file(name), &topology));
    return topology;
}

fsdp_mask mask_of(const char *text)
{
    fsdp_mask mask;

    assert_int_equal(FSDP_OK, fsdp_mask_read(text, &mask));
    return mask;
}

bool mask_is(const fsdp_mask *mask, const char *text)
{
    char found[FSDP_MASK_TEXT_BYTES];

    fsdp_mask_text(mask, found, sizeof found);
    if (strcmp(found, text) != 0) {
        print_error("the mask is %s and should be %s\n", found, text);
    }
    return strcmp(found, text) == 0;
}

void make_ranks(const fsdp_node *node, const char *const *masks, size_t n, fsdp_local_rank *ranks)
{
    memset(ranks, 0, n * sizeof *ranks);
    for (size_t r = 0; r < n; r++) {
        ranks[r].rank      = (int)r;
        ranks[r].threads   = masks != NULL ? mask_of(masks[r]) : node->threads;
        ranks[r].n_visible = -1;
    }
}

void show_gpu(const fsdp_node *node, fsdp_local_rank *rank, int gpu)
{
    rank->n_visible = 1;
    memcpy(rank->visible[0].address, node->gpus[gpu].address, sizeof rank->visible[0].address);
    rank->visible[0].ordinal = node->gpus[gpu].ordinal;
}

const char *gpus_of(const fsdp_place *places, size_t n)
{
    static char text[256];
    size_t      used = 0;

    text[0] = '\0';
    for (size_t r = 0; r < n && used < sizeof text; r++) {
        used += (size_t)snprintf(text + used, sizeof text - used, "%s%d", r > 0 ? " " : "", places[r].gpu);
    }
    return text;
}

const char *record_here(void)
{
    static char path[64];
    char        line[4096], host[64] = "";
    FILE       *in = fopen(node_file("here.xml.in"), "re");

    (void)snprintf(path, sizeof path, "/tmp/fsdp_here.%d.xml", (int)getpid());
    FILE *out = fopen(path, "we");
    assert_non_null(in);
    assert_non_null(out);
    (void)gethostname(host, sizeof host - 1);
    while (fgets(line, sizeof line, in) != NULL) {
        char *place = strstr(line, "@HOST@");

        if (place == NULL) {
            (void)fputs(line, out);
        } else {
            (void)fprintf(out, "%.*s%s%s", (int)(place - line), line, host, place + strlen("@HOST@"));
        }
    }
    (void)fclose(in);
    assert_int_equal(0, fclose(out));
    return path;
}
