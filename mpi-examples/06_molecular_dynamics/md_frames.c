#include "md_frames.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "mpi-examples/common/example_error.h"

/* ---- in memory --------------------------------------------------------------------------------------------------- */

int md_kept_add(md_kept *kept, const md_frame *frame)
{
    md_frame *grown  = realloc(kept->frames, (kept->n + 1) * sizeof *grown);
    double(*x)[3]    = malloc((frame->n + 1) * sizeof *x);
    int    *tags     = malloc((frame->own + 1) * sizeof *tags);
    double *energies = malloc((frame->own + 1) * sizeof *energies);

    kept->frames = grown ? grown : kept->frames;
    if (!grown || !x || !tags || !energies) {
        free(x);
        free(tags);
        free(energies);
        return -1;
    }
    memcpy(x, frame->x, frame->n * sizeof *x);
    memcpy(tags, frame->tags, frame->own * sizeof *tags);
    memcpy(energies, frame->energies, frame->own * sizeof *energies);
    kept->frames[kept->n++] =
        (md_frame){.own = frame->own, .n = frame->n, .tags = tags, .x = (const double(*)[3])x, .energies = energies};
    return 0;
}

void md_kept_release(md_kept *kept)
{
    size_t i;

    for (i = 0; i < kept->n; i++) {
        free((void *)kept->frames[i].x);
        free((void *)kept->frames[i].tags);
        free((void *)kept->frames[i].energies);
    }
    free(kept->frames);
}

/* ---- from a file ------------------------------------------------------------------------------------------------- */

enum { IMAGES = 27 };

static int allocate(md_dump *d)
{
    d->all      = malloc(d->atoms * sizeof *d->all);
    d->energies = malloc(d->atoms * sizeof *d->energies);
    d->tags     = malloc(d->atoms * sizeof *d->tags);
    d->around   = malloc(IMAGES * d->atoms * sizeof *d->around);
    return d->all && d->energies && d->tags && d->around;
}

fsdp_status md_dump_open(fsdp_context *ctx, const char *path, size_t atoms, double edge, md_dump *dump)
{
    const size_t rank = (size_t)fsdp_rank(ctx), ranks = (size_t)fsdp_size(ctx);
    char         message[EXAMPLE_MESSAGE_BYTES] = "";

    *dump      = (md_dump){.ctx = ctx, .path = path, .atoms = atoms, .edge = edge, .first = atoms * rank / ranks};
    dump->own  = atoms * (rank + 1) / ranks - dump->first;
    errno      = 0;
    dump->file = fopen(path, "r");
    if (!dump->file) {
        (void)snprintf(message, sizeof message, "--dump-file %.150s cannot be read: %s; choose one that all ranks see",
                       path, strerror(errno));
    } else if (!allocate(dump)) {
        (void)snprintf(message, sizeof message, "no memory for frames of %zu atoms; use fewer --cells", atoms);
    }
    return example_agree(ctx, message);
}

/* The lines before the atoms, and these, which are sorted by their tags. @return whether all is there */
static int read_atoms(md_dump *d)
{
    char   line[200];
    size_t i, id;
    int    header = 0;

    while (header == 0 && fgets(line, sizeof line, d->file)) {
        header = strncmp(line, "ITEM: ATOMS", 11) == 0;
    }
    for (i = 0; i < d->atoms && header; i++) {
        double *x = d->all[i], *energy = &d->energies[i];

        d->tags[i] = (int)i + 1;
        if (fscanf(d->file, "%zu %lf %lf %lf %lf", &id, &x[0], &x[1], &x[2], energy) != 5 || id != i + 1) {
            return 0;
        }
    }
    return header;
}

/* Adds atom `i` where it is within MD_CUTOFF of the box, in it included, but for itself where `own`. */
static size_t add_images(const md_dump *d, size_t i, int own, double (*images)[3])
{
    size_t n = 0;
    int    k, c;

    for (k = 0; k < IMAGES; k++) {
        const int shift[3] = {k % 3 - 1, k / 3 % 3 - 1, k / 9 - 1};
        int       inside   = !own || shift[0] || shift[1] || shift[2];

        for (c = 0; c < 3; c++) {
            images[n][c] = d->all[i][c] + shift[c] * d->edge;
            inside       = inside && images[n][c] > -MD_CUTOFF && images[n][c] < d->edge + MD_CUTOFF;
        }
        n += (size_t)inside;
    }
    return n;
}

fsdp_status md_dump_read(md_dump *dump, md_frame *frame)
{
    char   message[EXAMPLE_MESSAGE_BYTES] = "";
    size_t n                              = 0, i;
    int    c;

    if (!read_atoms(dump)) {
        (void)snprintf(message, sizeof message, "--dump-file %.150s ends early; is the disk full?", dump->path);
    }
    EXAMPLE_TRY(example_agree(dump->ctx, message));
    for (i = 0; i < dump->atoms; i++) {
        for (c = 0; c < 3; c++) {
            dump->all[i][c] -= floor(dump->all[i][c] / dump->edge) * dump->edge;
        }
    }
    memcpy(dump->around, dump->all + dump->first, dump->own * sizeof *dump->around);
    for (n = dump->own, i = 0; i < dump->atoms; i++) {
        const int own = i >= dump->first && i < dump->first + dump->own;

        n += add_images(dump, i, own, dump->around + n);
    }
    *frame = (md_frame){.own      = dump->own,
                        .n        = n,
                        .tags     = dump->tags + dump->first,
                        .x        = (const double(*)[3])dump->around,
                        .energies = dump->energies + dump->first};
    return FSDP_OK;
}

void md_dump_close(md_dump *dump)
{
    if (dump->file) {
        (void)fclose(dump->file);
    }
    free(dump->all);
    free(dump->energies);
    free(dump->tags);
    free(dump->around);
}
