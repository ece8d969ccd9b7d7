#include "tools/topo/report/collect.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

static fsdp_status write_text(const topo_report *report, topo_writer *writer, size_t index, char **text)
{
    size_t bytes = 0;
    FILE  *file  = open_memstream(text, &bytes);

    if (file) {
        writer(file, report, index);
    }
    if (!file || fclose(file) != 0 || !*text || bytes == 0 || bytes >= INT_MAX) {
        (void)fprintf(stderr, "fsdp-topo: no memory to describe the node; describe fewer ranks\n");
        return FSDP_ERR_MEMORY;
    }
    return FSDP_OK;
}

static fsdp_status allocate(topo_texts *texts, size_t n)
{
    texts->text = calloc(n, sizeof *texts->text);
    texts->n    = texts->text ? n : 0;
    return texts->text ? FSDP_OK : FSDP_ERR_MEMORY;
}

/* The text of each leader but the first, one after the other: together they may be long. */
static void receive(const topo_world *world, topo_texts *texts)
{
    for (int leader = 1; leader < (int)texts->n; leader++) {
        MPI_Status status;
        int        bytes;
        char      *text;

        MPI_Probe(leader, 0, world->leaders, &status);
        MPI_Get_count(&status, MPI_CHAR, &bytes);
        text = malloc((size_t)bytes);
        if (!text) {
            (void)fprintf(stderr, "fsdp-topo: no memory for %d bytes of a node; use fewer nodes\n", bytes);
            MPI_Abort(MPI_COMM_WORLD, 1);
        }
        MPI_Recv(text, bytes, MPI_CHAR, leader, 0, world->leaders, MPI_STATUS_IGNORE);
        texts->text[leader] = text;
    }
}

static void exchange(const topo_world *world, char *mine, topo_texts *texts)
{
    if (world->rank == 0) {
        texts->text[0] = mine;
        receive(world, texts);
    } else {
        MPI_Send(mine, (int)strlen(mine) + 1, MPI_CHAR, 0, 0, world->leaders);
        free(mine);
    }
}

fsdp_status topo_collect(const topo_world *world, const topo_report *report, topo_writer *writer, topo_texts *texts)
{
    const int   leads = topo_leads(world);
    char       *mine  = NULL;
    int         index = 0, nodes = 1;
    fsdp_status status = FSDP_OK;

    *texts = (topo_texts){0};
    if (world->leaders != MPI_COMM_NULL) {
        MPI_Comm_rank(world->leaders, &index);
        MPI_Comm_size(world->leaders, &nodes);
    }
    if (leads) {
        status = write_text(report, writer, (size_t)index, &mine);
    }
    if (world->rank == 0 && status == FSDP_OK) {
        status = allocate(texts, (size_t)nodes);
    }
    status = topo_agree(world, status);
    if (status != FSDP_OK) {
        free(mine);
        topo_texts_release(texts);
        return status;
    }
    if (leads) {
        exchange(world, mine, texts);
    }
    return FSDP_OK;
}

void topo_texts_release(topo_texts *texts)
{
    for (size_t i = 0; i < texts->n; i++) {
        free(texts->text[i]);
    }
    free(texts->text);
    *texts = (topo_texts){0};
}
