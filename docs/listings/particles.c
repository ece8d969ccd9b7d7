/*
 * Particles that come and go between ranks, in a checkpoint that any number of ranks goes on from: mpirun -n 3 particles run1 10
 */
#include "listing.h"

enum { PARTICLES = 1000, WIDTH = 3, COLUMNS = 2 };

/* begin particles */
/* What this rank has, in any order: other particles each time, and another number of them. */
typedef struct swarm {
    size_t  n;
    int64_t ids[PARTICLES];
    double  x[PARTICLES][WIDTH], v[PARTICLES][WIDTH];
} swarm;

static int add_swarm(fsdp_checkpoint *checkpoint)
{
    const fsdp_column columns[COLUMNS] = {{"x", FSDP_F64, WIDTH}, {"v", FSDP_F64, WIDTH}};

    TRY(fsdp_checkpoint_add_rows(checkpoint, "particles", COLUMNS, columns));
    return EXIT_SUCCESS;
}

/* Before each save: who has what now. */
static int save_swarm(fsdp_checkpoint *checkpoint, const swarm *s, const fsdp_checkpoint_state *state)
{
    const void *columns[COLUMNS] = {s->x, s->v};

    TRY(fsdp_checkpoint_set_rows(checkpoint, "particles", s->n, s->ids, columns));
    TRY(fsdp_checkpoint_save(checkpoint, state));
    return EXIT_SUCCESS;
}

/* Each rank is given an equal share, in the order of the numbers; a real code now sends each particle to where it belongs. */
static int load_swarm(fsdp_checkpoint *checkpoint, const char *path, swarm *s, fsdp_checkpoint_state *state)
{
    const int64_t *ids;
    const void    *columns[COLUMNS];

    TRY(fsdp_checkpoint_restore(checkpoint, path, NULL, state));
    TRY(fsdp_checkpoint_get_rows(checkpoint, "particles", &s->n, &ids, columns));
    for (size_t i = 0; i < s->n; i++) {
        s->ids[i] = ids[i];
        for (size_t d = 0; d < WIDTH; d++) {
            s->x[i][d] = ((const double *)columns[0])[i * WIDTH + d];
            s->v[i][d] = ((const double *)columns[1])[i * WIDTH + d];
        }
    }
    return EXIT_SUCCESS;
}
/* end particles */

/* Where a particle begins, and how fast it is: multiples of 1/8, so that sums are exact. */
static double start_of(int64_t id, size_t d)
{
    return (double)(id % 64) / 8 + (double)d;
}

static double speed_of(int64_t id, size_t d)
{
    return (double)(id % 7) / 8 - (double)d / 8;
}

static void create(swarm *s, int rank, int ranks)
{
    s->n = 0;
    for (int64_t id = rank; id < PARTICLES; id += ranks, s->n++) {
        s->ids[s->n] = id;
        for (size_t d = 0; d < WIDTH; d++) {
            s->x[s->n][d] = start_of(id, d);
            s->v[s->n][d] = speed_of(id, d);
        }
    }
}

static void move(swarm *s)
{
    for (size_t i = 0; i < s->n; i++) {
        for (size_t d = 0; d < WIDTH; d++) {
            s->x[i][d] += s->v[i][d];
        }
    }
}

/* How many are where they have to be. */
static int64_t count_right(const swarm *s, uint64_t step)
{
    int64_t right = 0;

    for (size_t i = 0; i < s->n; i++) {
        int is_right = 1;

        for (size_t d = 0; d < WIDTH; d++) {
            is_right &= s->x[i][d] == start_of(s->ids[i], d) + (double)step * speed_of(s->ids[i], d);
        }
        right += is_right;
    }
    return right;
}

static int simulate(fsdp_context *ctx, int argc, char **argv)
{
    static swarm          particles;
    char                  path[FSDP_CHECKPOINT_PATH_BYTES];
    fsdp_checkpoint_state state = {.step = 0};
    fsdp_checkpoint      *checkpoint;
    int64_t               right;

    if (argc != 3) {
        return EXIT_FAILURE;
    }
    TRY(fsdp_checkpoint_open_folder(ctx, argv[1], NULL, &checkpoint));
    TRY(add_swarm(checkpoint));
    TRY(fsdp_checkpoint_latest(ctx, argv[1], path, sizeof path));
    if (path[0] != '\0') {
        TRY(load_swarm(checkpoint, path, &particles, &state));
    } else {
        create(&particles, fsdp_rank(ctx), fsdp_size(ctx));
    }
    for (const uint64_t end = state.step + strtoull(argv[2], NULL, 10); state.step < end; state.step++) {
        move(&particles);
    }
    TRY(save_swarm(checkpoint, &particles, &state));
    TRY(fsdp_checkpoint_close(checkpoint));
    right = count_right(&particles, state.step);
    TRY(fsdp_allreduce(ctx, FSDP_IN_PLACE, &right, 1, FSDP_I64, FSDP_SUM));
    if (fsdp_rank(ctx) == 0) {
        printf("%lld of %d particles are where they have to be after %llu steps\n", (long long)right, PARTICLES,
               (unsigned long long)state.step);
    }
    return right == PARTICLES ? EXIT_SUCCESS : EXIT_FAILURE;
}

int main(int argc, char **argv)
{
    return listing_run(argc, argv, simulate);
}
