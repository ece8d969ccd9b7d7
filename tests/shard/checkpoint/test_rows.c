/*
 * Rows that are known by numbers: whoever has them when they are saved, and however many ranks load them, each comes back once,
 * with its values, in the order of the numbers, and the file is the same. All values of a row are functions of its number, so that
 * what is read is held against that.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/shard/checkpoint/saved_model.h"

enum { MOST_ROWS = 700, N_COLUMNS = 3, FLAGS = 5 };

static const fsdp_column COLUMNS[N_COLUMNS] = {
    {"position", FSDP_F64, 3}, {"charge", FSDP_F32, 1}, {"flags", FSDP_U8, FLAGS}};

/* ---- atoms ---------------------------------------------------------------------------------------------------------- */

typedef struct atoms {
    size_t        n;
    int64_t       ids[MOST_ROWS];
    double        positions[MOST_ROWS][3];
    float         charges[MOST_ROWS];
    unsigned char flags[MOST_ROWS][FLAGS];
    const void   *columns[N_COLUMNS];
} atoms;

static atoms mine;

/* Numbers far apart and of both signs, crowded in places; all different. */
static int64_t id_of(size_t i)
{
    const uint64_t spread = (uint64_t)i * 0x9E3779B97F4A7C15u;

    return i % 3 == 0 ? (int64_t)i : i % 3 == 1 ? -(int64_t)(1000 * i) : (int64_t)(spread | 1u << 20);
}

static void add_atom(int64_t id)
{
    const size_t i = mine.n++;

    mine.ids[i]     = id;
    mine.charges[i] = (float)(id % 1000) / 8;
    for (int k = 0; k < 3; k++) {
        mine.positions[i][k] = (double)(id % 65536) + k * 0.25;
    }
    for (int k = 0; k < FLAGS; k++) {
        mine.flags[i][k] = (unsigned char)((uint64_t)id * 7 + (uint64_t)k);
    }
}

/* Of `n` atoms those that are this rank's, by `seed`: none on some ranks, and in no order. Returns what set_rows() is given. */
static const void *const *deal(size_t n, int size, int rank, uint64_t seed)
{
    mine.n = 0;
    for (size_t i = n; i-- > 0;) {
        const uint64_t owner = fsdp_random_bits(seed, 1, i) % (uint64_t)(size > 2 ? size - 1 : size);

        if ((int)owner == rank) {
            add_atom(id_of(i));
        }
    }
    mine.columns[0] = mine.positions;
    mine.columns[1] = mine.charges;
    mine.columns[2] = mine.flags;
    return mine.columns;
}

static int by_value(const void *a, const void *b)
{
    const int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

    return x < y ? -1 : x > y;
}

/* What this rank has been given is its share of the first `n` atoms. */
static void expect_share(const fsdp_checkpoint *checkpoint, size_t n, int size, int rank)
{
    const size_t   first = n * (size_t)rank / (size_t)size, end = n * ((size_t)rank + 1) / (size_t)size;
    const int64_t *ids;
    const void    *columns[N_COLUMNS];
    int64_t        all[MOST_ROWS];
    size_t         got;

    for (size_t i = 0; i < n; i++) {
        all[i] = id_of(i);
    }
    qsort(all, n, sizeof all[0], by_value);
    assert_int_equal(FSDP_OK, fsdp_checkpoint_get_rows(checkpoint, "atoms", &got, &ids, columns));
    assert_int_equal(end - first, got);
    mine.n = 0;
    for (size_t i = first; i < end; i++) {
        add_atom(all[i]);
    }
    if (got > 0) {
        assert_memory_equal(mine.ids, ids, got * sizeof ids[0]);
        assert_memory_equal(mine.positions, columns[0], got * sizeof mine.positions[0]);
        assert_memory_equal(mine.charges, columns[1], got * sizeof mine.charges[0]);
        assert_memory_equal(mine.flags, columns[2], got * sizeof mine.flags[0]);
    }
}

/* ---- contexts ---------------------------------------------------------------------------------------------------------- */

typedef struct opened {
    MPI_Comm         comm;
    fsdp_context    *ctx;
    fsdp_checkpoint *checkpoint;
    int              size, rank;
} opened;

static const char *path_of(const char *folder)
{
    static char path[400];

    (void)snprintf(path, sizeof path, "%s/%s", saved_folder, folder);
    return path;
}

/* A folder on the first `size` ranks, with atoms; 0 on others. */
static int open_on(opened *o, int size, const char *folder, int asynchronous)
{
    fsdp_checkpoint_options options = FSDP_CHECKPOINT_OPTIONS_DEFAULT;

    *o = (opened){.size = size, .rank = fsdp_test_rank()};
    MPI_Comm_split(MPI_COMM_WORLD, o->rank < size ? 0 : MPI_UNDEFINED, 0, &o->comm);
    if (o->rank >= size) {
        return 0;
    }
    options.asynchronous = asynchronous;
    options.keep_last    = 0;
    assert_int_equal(FSDP_OK, fsdp_init(o->comm, NULL, &o->ctx));
    assert_int_equal(FSDP_OK, fsdp_checkpoint_open_folder(o->ctx, path_of(folder), &options, &o->checkpoint));
    assert_int_equal(FSDP_OK, fsdp_checkpoint_add_rows(o->checkpoint, "atoms", N_COLUMNS, COLUMNS));
    return 1;
}

static void close_all(opened *o)
{
    assert_int_equal(FSDP_OK, fsdp_checkpoint_close(o->checkpoint));
    assert_int_equal(FSDP_OK, fsdp_finalize(o->ctx));
    MPI_Comm_free(&o->comm);
}

static fsdp_status set_atoms(const opened *o, size_t n, uint64_t seed)
{
    const void *const *columns = deal(n, o->size, o->rank, seed);

    return fsdp_checkpoint_set_rows(o->checkpoint, "atoms", mine.n, mine.ids, columns);
}

static void save(const opened *o, uint64_t step, int asynchronous)
{
    const fsdp_checkpoint_state state = {.step = step};

    if (!asynchronous) {
        assert_int_equal(FSDP_OK, fsdp_checkpoint_save(o->checkpoint, &state));
        return;
    }
    assert_int_equal(FSDP_OK, fsdp_checkpoint_save_async(o->checkpoint, &state));
    memset(&mine, 0xEE, sizeof mine); /* a copy has been taken */
    assert_int_equal(FSDP_OK, fsdp_checkpoint_wait(o->checkpoint));
}

/* Of the file that holds the rows of a step, on rank 0. */
static uint64_t sum_of_file(const char *folder, int step)
{
    char          path[480];
    unsigned char bytes[4096];
    uint64_t      sum = 1;
    size_t        n;

    (void)snprintf(path, sizeof path, "%s/step-%09d/simulation.safetensors", path_of(folder), step);
    FILE *file = fopen(path, "rb");
    assert_non_null(file);
    while ((n = fread(bytes, 1, sizeof bytes, file)) > 0) {
        for (size_t i = 0; i < n; i++) {
            sum = sum * 1099511628211u + bytes[i];
        }
    }
    assert_int_equal(0, fclose(file));
    return sum;
}

/* ---- tests ------------------------------------------------------------------------------------------------------------- */

static const size_t NUMBERS[] = {0, 1, 2, 97, MOST_ROWS};
enum { N_NUMBERS = sizeof NUMBERS / sizeof NUMBERS[0] };

static void save_on(int size, const char *folder, int asynchronous)
{
    opened o;

    if (!open_on(&o, size, folder, asynchronous)) {
        return;
    }
    for (size_t i = 0; i < N_NUMBERS; i++) { /* other rows, on other ranks, from save to save */
        assert_int_equal(FSDP_OK, set_atoms(&o, NUMBERS[i], i + 1));
        save(&o, i + 1, asynchronous);
    }
    close_all(&o);
}

static void load_on(int size, const char *from)
{
    opened o;
    char   path[480];

    if (!open_on(&o, size, "loaded", 0)) {
        return;
    }
    for (size_t i = N_NUMBERS; i-- > 0;) {
        (void)snprintf(path, sizeof path, "%s/step-%09d", path_of(from), (int)i + 1);
        assert_int_equal(FSDP_OK, fsdp_checkpoint_restore(o.checkpoint, path, NULL, NULL));
        expect_share(o.checkpoint, NUMBERS[i], o.size, o.rank);
    }
    close_all(&o);
}

static void any_ranks_save_what_any_ranks_load(void **state)
{
    uint64_t first[N_NUMBERS] = {0};
    char     folder[32];

    (void)state;
    for (int size = 1; size <= fsdp_test_size(); size++) {
        (void)snprintf(folder, sizeof folder, "saved-%d", size);
        save_on(size, folder, size % 2);
        MPI_Barrier(MPI_COMM_WORLD);
        for (size_t i = 0; i < N_NUMBERS && fsdp_test_rank() == 0; i++) {
            const uint64_t sum = sum_of_file(folder, (int)i + 1);

            first[i] = size == 1 ? sum : first[i];
            assert_int_equal(first[i], sum); /* whatever the ranks */
        }
        load_on(fsdp_test_size() + 1 - size, folder);
        MPI_Barrier(MPI_COMM_WORLD);
    }
}

static void nothing_is_held_between_saves(void **state)
{
    fsdp_memory before, after;
    fsdp_budget budget = {.total = 0};
    opened      o;

    (void)state;
    (void)open_on(&o, fsdp_test_size(), "memory", 1);
    for (uint64_t step = 1; step <= 2; step++) {
        assert_int_equal(FSDP_OK, fsdp_memory_usage(o.ctx, &before));
        assert_int_equal(FSDP_OK, set_atoms(&o, MOST_ROWS, step));
        save(&o, step, 1);
    }
    assert_int_equal(FSDP_OK, fsdp_memory_usage(o.ctx, &after));
    assert_int_equal(before.current[FSDP_MEMORY_STAGING], after.current[FSDP_MEMORY_STAGING]);
    assert_int_equal(FSDP_OK, fsdp_checkpoint_budget(o.checkpoint, &budget));
    assert_true(budget.bytes[FSDP_MEMORY_BOOKKEEPING] > 0);
    close_all(&o);
}

static void a_number_that_two_rows_have_is_named_on_every_rank(void **state)
{
    const fsdp_checkpoint_state saved = {.step = 1};
    opened                      o;

    (void)state;
    (void)open_on(&o, fsdp_test_size(), "twice", 0);
    assert_int_equal(FSDP_OK, set_atoms(&o, 97, 1));
    if (o.rank == 0) { /* wherever the other one is */
        add_atom(id_of(5));
        assert_int_equal(FSDP_OK, fsdp_checkpoint_set_rows(o.checkpoint, "atoms", mine.n, mine.ids, mine.columns));
    }
    assert_int_equal(FSDP_ERR_ARG, fsdp_checkpoint_save(o.checkpoint, &saved));
    char text[80];
    (void)snprintf(text, sizeof text, "two rows of 'atoms' have the number %lld", (long long)id_of(5));
    assert_non_null(strstr(fsdp_last_error(o.ctx), text));
    assert_int_equal(FSDP_OK, set_atoms(&o, 97, 1));
    assert_int_equal(FSDP_OK, fsdp_checkpoint_save(o.checkpoint, &saved)); /* nothing is lost */
    close_all(&o);
}

static void a_rank_that_has_not_said_what_it_has_is_named(void **state)
{
    const fsdp_checkpoint_state saved = {.step = 1};
    opened                      o;
    char                        text[80];

    (void)state;
    (void)open_on(&o, fsdp_test_size(), "unsaid", 0);
    if (o.rank < o.size - 1) {
        assert_int_equal(FSDP_OK, set_atoms(&o, 97, 1));
    }
    assert_int_equal(FSDP_ERR_STATE, fsdp_checkpoint_save(o.checkpoint, &saved));
    (void)snprintf(text, sizeof text, "rank %d has not said which rows of 'atoms' it has", o.size - 1);
    assert_non_null(strstr(fsdp_last_error(o.ctx), text));
    assert_int_equal(FSDP_OK, set_atoms(&o, 97, 1));
    assert_int_equal(FSDP_OK, fsdp_checkpoint_save(o.checkpoint, &saved));
    assert_int_equal(FSDP_ERR_STATE,
                     fsdp_checkpoint_save(o.checkpoint, &(fsdp_checkpoint_state){.step = 2})); /* again */
    close_all(&o);
}

static void bad_arguments_fail_on_every_rank(void **state)
{
    static const struct {
        const char *name;
        fsdp_column column;
        const char *says;
    } wrong[] = {
        {NULL, {"x", FSDP_F32, 1}, "need a name"},
        {"", {"x", FSDP_F32, 1}, "need a name"},
        {"atoms", {"x", FSDP_F32, 1}, "'atoms.id': there is an array of that name already"},
        {"others", {"id", FSDP_F32, 1}, "two of its columns have one name, or one is called id"},
        {"others", {NULL, FSDP_F32, 1}, "a column has no name"},
        {"others", {"x", (fsdp_dtype)99, 1}, "type is none of fsdp_dtype"},
        {"others", {"x", FSDP_F32, 0}, "its width is 0"},
        {"\xff", {"x", FSDP_F32, 1}, "is not UTF-8"},
    };
    const void *columns[N_COLUMNS] = {0};
    int64_t     id                 = 0;
    size_t      n;
    opened      o;

    (void)state;
    (void)open_on(&o, fsdp_test_size(), "wrong", 0);
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        assert_int_equal(FSDP_ERR_ARG, fsdp_checkpoint_add_rows(o.checkpoint, wrong[i].name, 1, &wrong[i].column));
        assert_non_null(strstr(fsdp_last_error(o.ctx), wrong[i].says));
    }
    assert_int_equal(FSDP_ERR_ARG, fsdp_checkpoint_add_rows(o.checkpoint, "others", 0, COLUMNS));
    assert_int_equal(FSDP_ERR_ARG, fsdp_checkpoint_add_rows(NULL, "others", 1, COLUMNS));
    assert_int_equal(FSDP_ERR_ARG, fsdp_checkpoint_set_rows(o.checkpoint, "others", 0, NULL, NULL));
    assert_int_equal(FSDP_ERR_ARG, fsdp_checkpoint_set_rows(o.checkpoint, "atoms", 1, &id, columns));
    assert_int_equal(FSDP_ERR_STATE, fsdp_checkpoint_get_rows(o.checkpoint, "atoms", &n, NULL, columns));
    assert_non_null(strstr(fsdp_last_error(o.ctx), "call fsdp_checkpoint_restore"));
    if (o.size > 1) {
        const fsdp_column other = {"x", FSDP_F32, o.rank == 1 ? 2 : 1};
        assert_int_equal(FSDP_ERR_MISMATCH, fsdp_checkpoint_add_rows(o.checkpoint, "others", 1, &other));
    }
    assert_int_equal(FSDP_OK,
                     fsdp_checkpoint_add_rows(o.checkpoint, "others", 1, COLUMNS)); /* the name is free still */
    close_all(&o);
}

static void what_does_not_fit_is_named(void **state)
{
    const fsdp_column            wider = {"position", FSDP_F64, 2}, more = {"mass", FSDP_F32, 1};
    fsdp_checkpoint_load_options options = FSDP_CHECKPOINT_LOAD_OPTIONS_DEFAULT;
    const void                  *columns[N_COLUMNS];
    size_t                       n;
    opened                       o;
    char                         path[480];

    (void)state;
    save_on(fsdp_test_size(), "fits", 0);
    (void)snprintf(path, sizeof path, "%s/step-%09d", path_of("fits"), N_NUMBERS);
    (void)open_on(&o, fsdp_test_size(), "loaded", 0);
    assert_int_equal(FSDP_OK, fsdp_checkpoint_add_rows(o.checkpoint, "ions", 1, &more));
    assert_int_equal(FSDP_ERR_ARG, fsdp_checkpoint_restore(o.checkpoint, path, NULL, NULL));
    assert_non_null(strstr(fsdp_last_error(o.ctx), "'ions.id' is missing in the checkpoint"));
    options.allow_missing = 1;
    assert_int_equal(FSDP_OK, fsdp_checkpoint_restore(o.checkpoint, path, &options, NULL));
    expect_share(o.checkpoint, MOST_ROWS, o.size, o.rank);
    assert_int_equal(FSDP_OK, fsdp_checkpoint_get_rows(o.checkpoint, "ions", &n, NULL, columns));
    assert_int_equal(0, n);
    close_all(&o);

    o = (opened){.size = fsdp_test_size(), .rank = fsdp_test_rank()};
    MPI_Comm_dup(MPI_COMM_WORLD, &o.comm);
    assert_int_equal(FSDP_OK, fsdp_init(o.comm, NULL, &o.ctx));
    assert_int_equal(FSDP_OK, fsdp_checkpoint_open_folder(o.ctx, path_of("loaded"), NULL, &o.checkpoint));
    assert_int_equal(FSDP_OK, fsdp_checkpoint_add_rows(o.checkpoint, "atoms", 1, &wider));
    options             = (fsdp_checkpoint_load_options)FSDP_CHECKPOINT_LOAD_OPTIONS_DEFAULT;
    options.allow_extra = 1;
    assert_int_equal(FSDP_ERR_ARG, fsdp_checkpoint_restore(o.checkpoint, path, &options, NULL));
    assert_non_null(strstr(fsdp_last_error(o.ctx), "'atoms.position' is F64 [700, 3] in the file"));
    assert_int_equal(FSDP_ERR_STATE, fsdp_checkpoint_get_rows(o.checkpoint, "atoms", &n, NULL, columns));
    close_all(&o);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(any_ranks_save_what_any_ranks_load),
        cmocka_unit_test(nothing_is_held_between_saves),
        cmocka_unit_test(a_number_that_two_rows_have_is_named_on_every_rank),
        cmocka_unit_test(a_rank_that_has_not_said_what_it_has_is_named),
        cmocka_unit_test(bad_arguments_fail_on_every_rank),
        cmocka_unit_test(what_does_not_fit_is_named),
    };

    return fsdp_test_main(argc, argv, tests, saved_folder_make, saved_folder_remove);
}
