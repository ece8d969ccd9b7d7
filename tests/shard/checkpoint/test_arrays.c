/*
 * The program's own arrays in checkpoints: whatever boxes whatever number of ranks saved, every element is read again into
 * whatever boxes another number of ranks has. An element's value is a function of its array and index, so that what is read is
 * held against that, and not against what the library wrote elsewhere.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "tests/shard/checkpoint/saved_model.h"

enum { MOST_DIMS = 4, MOST_RANKS = 8, GHOSTS = 2, N_TRIALS = 24 };

static const int sizes[] = {1, 2, 3, 5, 8};
#define N_SIZES (sizeof sizes / sizeof sizes[0])

static uint64_t state_of_random;

static size_t random_below(size_t n)
{
    state_of_random = state_of_random * 6364136223846793005u + 1442695040888963407u;
    return n > 0 ? (size_t)(state_of_random >> 33) % n : 0;
}

/* ---- arrays -------------------------------------------------------------------------------------------------------- */

typedef struct field {
    char           name[32];
    fsdp_dtype     dtype;
    size_t         n_dims;
    size_t         shape[MOST_DIMS];
    fsdp_box       boxes[MOST_RANKS];
    int            replicated;
    fsdp_box       mine;  /* with strides */
    unsigned char *room;  /* of all local memory, ghost layers included */
    size_t         bytes; /* of it */
    unsigned char *first; /* of the box */
} field;

/* Byte `k` of an element. */
static unsigned char value(const field *f, size_t element, size_t k)
{
    return (unsigned char)(element * 37 + (element >> 7) * 11 + k * 101 + (unsigned char)f->name[1] * 13u + 5);
}

/* Cuts a box at random among `n` ranks from `rank` on: what is left of nothing is boxes without elements. */
static void cut(field *f, fsdp_box box, int rank, int n)
{
    if (n == 1) {
        f->boxes[rank] = box;
        return;
    }
    const size_t d     = random_below(f->n_dims);
    const size_t at    = random_below(box.extent[d] + 1);
    const int    front = 1 + (int)random_below((size_t)n - 1);
    fsdp_box     back  = box;

    back.offset[d] += at;
    back.extent[d] -= at;
    box.extent[d] = at;
    cut(f, box, rank, front);
    cut(f, back, rank + front, n - front);
}

/* Memory for this rank's box: dense, or with ghost layers, or with dimensions in the opposite order. */
static void take_memory(field *f, int rank, size_t kind)
{
    const size_t width    = fsdp_dtype_size(f->dtype);
    size_t       elements = 1, first = 0;

    f->mine = f->boxes[rank];
    for (size_t i = 0; i < f->n_dims; i++) {
        const size_t d     = kind == 2 ? i : f->n_dims - 1 - i;
        const size_t ghost = kind == 0 ? 0 : GHOSTS;

        f->mine.stride[d] = kind == 0 ? 0 : elements;
        first += ghost * elements;
        elements *= f->mine.extent[d] + 2 * ghost;
    }
    f->bytes = elements * width;
    f->room  = malloc(f->bytes + 1);
    assert_non_null(f->room);
    memset(f->room, 0xEE, f->bytes);
    f->first = f->room + first * width;
}

/* The place of an index of the box in memory. */
static unsigned char *place_of(const field *f, const size_t *index)
{
    size_t at = 0, dense = 1;

    for (size_t d = f->n_dims; d-- > 0;) {
        at += index[d] * (f->mine.stride[d] != 0 ? f->mine.stride[d] : dense);
        dense *= f->mine.extent[d];
    }
    return f->first + at * fsdp_dtype_size(f->dtype);
}

/* Calls `visit` for each element of this rank's box; returns how many there are. */
static size_t each_element(field *f, void (*visit)(const field *f, unsigned char *at, size_t element))
{
    size_t index[MOST_DIMS] = {0}, n = 0;

    for (size_t d = 0; d < f->n_dims; d++) {
        if (f->mine.extent[d] == 0) {
            return 0;
        }
    }
    for (;;) {
        size_t element = 0, d = f->n_dims;

        for (size_t k = 0; k < f->n_dims; k++) {
            element = element * f->shape[k] + f->mine.offset[k] + index[k];
        }
        visit(f, place_of(f, index), element);
        n++;
        while (d > 0 && ++index[d - 1] == f->mine.extent[d - 1]) {
            index[--d] = 0;
        }
        if (d == 0) {
            return n;
        }
    }
}

static void set(const field *f, unsigned char *at, size_t element)
{
    for (size_t k = 0; k < fsdp_dtype_size(f->dtype); k++) {
        at[k] = value(f, element, k);
    }
}

static void expect(const field *f, unsigned char *at, size_t element)
{
    for (size_t k = 0; k < fsdp_dtype_size(f->dtype); k++) {
        if (at[k] != value(f, element, k)) {
            fail_msg("%s, element %zu, byte %zu", f->name, element, k);
        }
        at[k] = 0xEE; /* so that what is left shows what else was touched */
    }
}

static void expect_as_filled(const field *f)
{
    for (size_t i = 0; i < f->bytes; i++) {
        assert_int_equal(0xEE, f->room[i]);
    }
}

/* ---- files --------------------------------------------------------------------------------------------------------- */

static const char *path_of(const char *name)
{
    static char path[512];

    (void)snprintf(path, sizeof path, "%s/%s", saved_folder, name);
    return path;
}

/* The same fields whatever the number of ranks; boxes and memory depend on `seed`. */
static void make_fields(field *fields, size_t n, uint64_t trial, uint64_t seed, int size, int rank)
{
    for (size_t i = 0; i < n; i++) {
        field   *f     = &fields[i];
        fsdp_box whole = {.offset = {0}};

        state_of_random = trial * 977 + i * 31 + 1;
        (void)random_below(1);
        *f = (field){.dtype = (fsdp_dtype)random_below(FSDP_N_DTYPES), .n_dims = 1 + random_below(MOST_DIMS)};
        f->replicated = random_below(4) == 0;
        (void)snprintf(f->name, sizeof f->name, "f%c", (int)('a' + i));
        for (size_t d = 0; d < f->n_dims; d++) {
            f->shape[d]     = random_below(8) == 0 ? random_below(2) : 1 + random_below(i == 0 && d == 0 ? 2000 : 13);
            whole.extent[d] = f->shape[d];
        }
        state_of_random = (trial * 977 + i * 31 + 1) * 31 + seed;
        for (int r = 0; r < size; r++) {
            f->boxes[r] = whole;
        }
        if (!f->replicated) {
            cut(f, whole, 0, size);
        }
        take_memory(f, rank, f->replicated ? 0 : random_below(3));
    }
}

static void free_fields(field *fields, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        free(fields[i].room);
    }
}

static void add_fields(fsdp_checkpoint *checkpoint, field *fields, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        field *f = &fields[i];

        assert_int_equal(FSDP_OK, fsdp_checkpoint_add(checkpoint, f->name, f->dtype, f->n_dims, f->shape,
                                                      f->replicated ? NULL : &f->mine, f->first));
    }
}

/* A context on the first `size` ranks; 0 on others. */
static int open_context(int size, MPI_Comm *comm, fsdp_context **ctx)
{
    const int inside = fsdp_test_rank() < size;

    MPI_Comm_split(MPI_COMM_WORLD, inside ? 0 : MPI_UNDEFINED, 0, comm);
    if (inside) {
        assert_int_equal(FSDP_OK, fsdp_init(*comm, NULL, ctx));
    }
    return inside;
}

static void close_context(MPI_Comm *comm, fsdp_context *ctx)
{
    assert_int_equal(FSDP_OK, fsdp_finalize(ctx));
    MPI_Comm_free(comm);
}

enum { N_FIELDS = 5 };

static void save_fields(const char *folder, uint64_t trial, int size, int asynchronous)
{
    const fsdp_checkpoint_state state   = {.step = trial + 1};
    fsdp_checkpoint_options     options = FSDP_CHECKPOINT_OPTIONS_DEFAULT;
    field                       fields[N_FIELDS];
    fsdp_checkpoint            *checkpoint;
    fsdp_context               *ctx;
    MPI_Comm                    comm;

    if (!open_context(size, &comm, &ctx)) {
        return;
    }
    options.asynchronous = asynchronous;
    make_fields(fields, N_FIELDS, trial, 1, size, fsdp_test_rank());
    assert_int_equal(FSDP_OK, fsdp_checkpoint_open_folder(ctx, path_of(folder), &options, &checkpoint));
    add_fields(checkpoint, fields, N_FIELDS);
    for (size_t i = 0; i < N_FIELDS; i++) {
        (void)each_element(&fields[i], set);
    }
    if (asynchronous) {
        assert_int_equal(FSDP_OK, fsdp_checkpoint_save_async(checkpoint, &state));
        for (size_t i = 0; i < N_FIELDS; i++) {
            memset(fields[i].room, 0, fields[i].bytes); /* the copy has been taken */
        }
        assert_int_equal(FSDP_OK, fsdp_checkpoint_wait(checkpoint));
    } else {
        assert_int_equal(FSDP_OK, fsdp_checkpoint_save(checkpoint, &state));
    }
    assert_int_equal(FSDP_OK, fsdp_checkpoint_close(checkpoint));
    free_fields(fields, N_FIELDS);
    close_context(&comm, ctx);
}

static void load_fields(const char *folder, const char *from, uint64_t trial, int size)
{
    fsdp_checkpoint_state state = {.step = 0};
    field                 fields[N_FIELDS];
    fsdp_checkpoint      *checkpoint;
    fsdp_context         *ctx;
    MPI_Comm              comm;
    char                  path[512];

    if (!open_context(size, &comm, &ctx)) {
        return;
    }
    (void)snprintf(path, sizeof path, "%s", path_of(from));
    make_fields(fields, N_FIELDS, trial, 2, size, fsdp_test_rank());
    assert_int_equal(FSDP_OK, fsdp_checkpoint_open_folder(ctx, path_of(folder), NULL, &checkpoint));
    add_fields(checkpoint, fields, N_FIELDS);
    assert_int_equal(FSDP_OK, fsdp_checkpoint_restore(checkpoint, path, NULL, &state));
    assert_int_equal(trial + 1, state.step);
    for (size_t i = 0; i < N_FIELDS; i++) {
        (void)each_element(&fields[i], expect);
        expect_as_filled(&fields[i]); /* ghost layers are as they were */
    }
    assert_int_equal(FSDP_OK, fsdp_checkpoint_close(checkpoint));
    free_fields(fields, N_FIELDS);
    close_context(&comm, ctx);
}

static void any_tiling_on_any_ranks_is_read_into_any_other(void **state)
{
    char name[32];

    (void)state;
    for (uint64_t trial = 0; trial < N_TRIALS; trial++) {
        const int from = sizes[trial % N_SIZES], to = sizes[trial / N_SIZES % N_SIZES];

        (void)snprintf(name, sizeof name, "tilings-%d", (int)trial);
        if (from <= fsdp_test_size() && to <= fsdp_test_size()) {
            save_fields(name, trial, from, trial % 3 == 1);
            MPI_Barrier(MPI_COMM_WORLD);
            load_fields("other", name, trial, to);
            MPI_Barrier(MPI_COMM_WORLD);
        }
    }
}

/* ---- what is wrong ------------------------------------------------------------------------------------------------- */

typedef struct opened {
    MPI_Comm         comm;
    fsdp_context    *ctx;
    fsdp_checkpoint *checkpoint;
    int              rank, size;
} opened;

static opened open_all(const char *folder)
{
    opened o = {.rank = fsdp_test_rank(), .size = fsdp_test_size()};

    (void)open_context(o.size, &o.comm, &o.ctx);
    assert_int_equal(FSDP_OK, fsdp_checkpoint_open_folder(o.ctx, path_of(folder), NULL, &o.checkpoint));
    return o;
}

static void close_all(opened *o)
{
    assert_int_equal(FSDP_OK, fsdp_checkpoint_close(o->checkpoint));
    close_context(&o->comm, o->ctx);
}

static void assert_error(const opened *o, const char *text)
{
    if (strstr(fsdp_last_error(o->ctx), text) == NULL) {
        fail_msg("rank %d: '%s' is not in '%s'", o->rank, text, fsdp_last_error(o->ctx));
    }
}

/* Four columns for each rank, three rows. */
static fsdp_box columns_of(int rank)
{
    return (fsdp_box){.offset = {0, 4 * (size_t)rank}, .extent = {3, 4}};
}

static void boxes_that_overlap_are_named_on_every_rank(void **state)
{
    opened       o        = open_all("overlap");
    const size_t shape[2] = {3, 4 * (size_t)o.size};
    fsdp_box     box      = columns_of(o.rank);
    double       memory[4 * MOST_RANKS * 3];
    char         text[160];

    (void)state;
    if (o.rank == o.size - 1 && o.size > 1) { /* one column more, the last of its left neighbour */
        box.offset[1]--;
        box.extent[1]++;
    }
    const fsdp_status status = fsdp_checkpoint_add(o.checkpoint, "t", FSDP_F64, 2, shape, &box, memory);
    assert_int_equal(o.size > 1 ? FSDP_ERR_ARG : FSDP_OK, status);
    if (o.size > 1) {
        (void)snprintf(text, sizeof text, "[0:3, %d:%d] of rank %d and [0:3, %d:%d] of rank %d overlap", 4 * o.size - 8,
                       4 * o.size - 4, o.size - 2, 4 * o.size - 5, 4 * o.size, o.size - 1);
        assert_error(&o, text);
        box = columns_of(o.rank);
        assert_int_equal(FSDP_OK, fsdp_checkpoint_add(o.checkpoint, "t", FSDP_F64, 2, shape, &box, memory));
    }
    close_all(&o);
}

static void elements_in_no_box_are_named_on_every_rank(void **state)
{
    opened       o        = open_all("hole");
    const size_t shape[2] = {3, 4 * (size_t)o.size};
    fsdp_box     box      = columns_of(o.rank);
    double       memory[4 * MOST_RANKS * 3];
    char         text[160];

    (void)state;
    if (o.rank == o.size - 1) {
        box.extent[0] = 2;
    }
    assert_int_equal(FSDP_ERR_ARG, fsdp_checkpoint_add(o.checkpoint, "t", FSDP_F64, 2, shape, &box, memory));
    (void)snprintf(text, sizeof text, "elements [2:3, %d:%d] are in no rank's box", 4 * o.size - 4, 4 * o.size);
    assert_error(&o, text);
    close_all(&o);
}

/* As many elements as the array has, but one twice and one not at all: a sum of volumes would not see it. */
static void a_hole_as_large_as_an_overlap_is_found(void **state)
{
    opened       o        = open_all("both");
    const size_t shape[1] = {2 * (size_t)o.size + 2};
    fsdp_box     box      = {.offset = {2 * (size_t)o.rank}, .extent = {2}};
    float        memory[4];

    (void)state;
    if (o.rank == 0) {
        box.extent[0] = 4;
    }
    const fsdp_status status = fsdp_checkpoint_add(o.checkpoint, "t", FSDP_F32, 1, shape, &box, memory);
    assert_int_equal(o.size > 1 ? FSDP_ERR_ARG : FSDP_OK, status);
    if (o.size > 1) {
        assert_error(&o, "[0:4] of rank 0 and [2:4] of rank 1 overlap");
    }
    close_all(&o);
}

static void bad_arguments_fail_on_every_rank(void **state)
{
    opened           o        = open_all("arguments");
    const size_t     shape[2] = {3, 4 * (size_t)o.size};
    const size_t     huge[2]  = {SIZE_MAX / 2, 8};
    fsdp_box         box      = columns_of(o.rank);
    double           memory[3 * 4 * MOST_RANKS];
    fsdp_checkpoint *c = o.checkpoint;

    (void)state;
    assert_int_equal(FSDP_ERR_ARG, fsdp_checkpoint_add(c, o.rank == 0 ? NULL : "t", FSDP_F64, 2, shape, &box, memory));
    assert_int_equal(FSDP_ERR_ARG, fsdp_checkpoint_add(c, "", FSDP_F64, 2, shape, &box, memory));
    assert_int_equal(FSDP_ERR_ARG, fsdp_checkpoint_add(c, "\xff", FSDP_F64, 2, shape, &box, memory));
    assert_int_equal(FSDP_ERR_ARG, fsdp_checkpoint_add(c, "t", FSDP_F64, 2, huge, NULL, memory));
    assert_int_equal(FSDP_ERR_ARG, fsdp_checkpoint_add(c, "t", FSDP_F64, 0, NULL, &box, memory));
    assert_int_equal(FSDP_ERR_ARG, fsdp_checkpoint_add(c, "t", FSDP_F64, 2, shape, &box, NULL));
    assert_int_equal(o.size > 1 ? FSDP_ERR_MISMATCH : FSDP_OK,
                     fsdp_checkpoint_add(c, o.rank == 0 ? "a" : "t", FSDP_F64, 2, shape, &box, memory));
    box.offset[0] = 1;
    assert_int_equal(FSDP_ERR_ARG, fsdp_checkpoint_add(c, "u", FSDP_F64, 2, shape, &box, memory));
    assert_error(&o, "elements 1 to 1 + 3 of dimension 0, which has 3");
    box           = columns_of(o.rank);
    box.stride[1] = 1;
    assert_int_equal(FSDP_ERR_ARG, fsdp_checkpoint_add(c, "u", FSDP_F64, 2, shape, &box, memory));
    assert_error(&o, "the stride of dimension 0 is 0");
    box.stride[1] = 0;
    assert_int_equal(FSDP_OK, fsdp_checkpoint_add(c, "u", FSDP_F64, 2, shape, &box, memory));
    assert_int_equal(FSDP_ERR_ARG, fsdp_checkpoint_add(c, "u", FSDP_F64, 2, shape, &box, memory));
    assert_error(&o, "there is an array of that name already");
    close_all(&o);
}

static void what_does_not_fit_is_named_and_nothing_changes(void **state)
{
    const fsdp_checkpoint_state  zero    = {.step = 0};
    fsdp_checkpoint_load_options options = FSDP_CHECKPOINT_LOAD_OPTIONS_DEFAULT;
    const size_t                 three = 3, four = 4;
    opened                       o    = open_all("fit");
    int32_t                      a[4] = {1, 2, 3, 4}, b[4] = {5, 6, 7, 8}, c[4] = {-1, -1, -1, -1};

    (void)state;
    assert_int_equal(FSDP_OK, fsdp_checkpoint_add(o.checkpoint, "a", FSDP_I32, 1, &three, NULL, a));
    assert_int_equal(FSDP_OK, fsdp_checkpoint_add(o.checkpoint, "b", FSDP_I32, 1, &four, NULL, b));
    assert_int_equal(FSDP_OK, fsdp_checkpoint_save(o.checkpoint, &zero));
    close_all(&o);

    o = open_all("fit-again");
    assert_int_equal(FSDP_OK, fsdp_checkpoint_add(o.checkpoint, "a", FSDP_I32, 1, &four, NULL, c));
    assert_int_equal(FSDP_ERR_ARG, fsdp_checkpoint_restore(o.checkpoint, path_of("fit"), NULL, NULL));
    assert_error(&o,
                 "1 extra, 1 of another shape or type; the first: array 'a' is I32 [3] in the file, and was added as "
                 "I32 [4]");
    assert_int_equal(FSDP_OK, fsdp_checkpoint_add(o.checkpoint, "b", FSDP_F32, 1, &four, NULL, c));
    assert_int_equal(FSDP_OK, fsdp_checkpoint_add(o.checkpoint, "new", FSDP_I32, 1, &four, NULL, c));
    assert_int_equal(FSDP_ERR_ARG, fsdp_checkpoint_restore(o.checkpoint, path_of("fit"), NULL, NULL));
    assert_error(&o, "1 missing, 0 extra, 2 of another shape or type");
    assert_int_equal(-1, c[0]);
    options.allow_missing = options.allow_mis_shaped = 1;
    assert_int_equal(FSDP_OK, fsdp_checkpoint_restore(o.checkpoint, path_of("fit"), &options, NULL));
    assert_int_equal(-1, c[0]);
    close_all(&o);
}

static void a_replicated_array_that_differs_is_found_under_full_verification(void **state)
{
    const fsdp_checkpoint_state zero      = {.step = 0};
    const size_t                three     = 3;
    float                       values[3] = {1, 2, 3};
    fsdp_checkpoint            *checkpoint;
    fsdp_config                 config;
    fsdp_context               *ctx;

    (void)state;
    fsdp_config_init(&config);
    config.verify = FSDP_VERIFY_FULL;
    assert_int_equal(FSDP_OK, fsdp_init(MPI_COMM_WORLD, &config, &ctx));
    assert_int_equal(FSDP_OK, fsdp_checkpoint_open_folder(ctx, path_of("alike"), NULL, &checkpoint));
    assert_int_equal(FSDP_OK, fsdp_checkpoint_add(checkpoint, "values", FSDP_F32, 1, &three, NULL, values));
    assert_int_equal(FSDP_OK, fsdp_checkpoint_save(checkpoint, &zero));
    values[2] += (float)(fsdp_test_rank() == fsdp_test_size() - 1);
    assert_int_equal(fsdp_test_size() > 1 ? FSDP_ERR_MISMATCH : FSDP_OK, fsdp_checkpoint_save(checkpoint, &zero));
    if (fsdp_test_size() > 1) {
        assert_non_null(strstr(fsdp_last_error(ctx), "array 'values'"));
    }
    assert_int_equal(FSDP_OK, fsdp_checkpoint_close(checkpoint));
    assert_int_equal(FSDP_OK, fsdp_finalize(ctx));
}

/* ---- damage -------------------------------------------------------------------------------------------------------- */

static void flip(const char *path, long at)
{
    MPI_Barrier(MPI_COMM_WORLD);
    if (fsdp_test_rank() == 0) {
        FILE *f = fopen(path, "r+b");

        assert_non_null(f);
        assert_int_equal(0, fseek(f, at, SEEK_SET));
        const int byte = fgetc(f);
        assert_int_equal(0, fseek(f, at, SEEK_SET));
        assert_true(fputc(byte ^ 4, f) != EOF);
        assert_int_equal(0, fclose(f));
    }
    MPI_Barrier(MPI_COMM_WORLD);
}

/* Rows of 4 of a file of 9 MiB: each chunk has bytes of all ranks. */
static void a_flipped_bit_is_found_wherever_it_is(void **state)
{
    enum { ROWS = 150 * 1024 };
    const fsdp_checkpoint_state zero     = {.step = 0};
    opened                      o        = open_all("bits");
    const size_t                shape[2] = {ROWS, 4 * (size_t)o.size};
    const fsdp_box              box      = {.offset = {0, 4 * (size_t)o.rank}, .extent = {ROWS, 4}};
    float                      *memory   = malloc(ROWS * 4 * sizeof *memory);
    char                        path[512];

    (void)state;
    assert_non_null(memory);
    for (size_t i = 0; i < ROWS * 4; i++) {
        memory[i] = (float)(i * 4 + (size_t)o.rank);
    }
    assert_int_equal(FSDP_OK, fsdp_checkpoint_add(o.checkpoint, "t", FSDP_F32, 2, shape, &box, memory));
    assert_int_equal(FSDP_OK, fsdp_checkpoint_save(o.checkpoint, &zero));
    (void)snprintf(path, sizeof path, "%s", path_of("bits/step-000000000/simulation.safetensors"));
    const long bytes = (long)(ROWS * 4 * sizeof *memory) * o.size;
    for (long at = 3; at < 256 + bytes; at += bytes / 7) {
        flip(path, at);
        memory[5] = -1.0F;
        assert_int_equal(FSDP_ERR_FORMAT, fsdp_checkpoint_restore(o.checkpoint, path_of("bits"), NULL, NULL));
        assert_true(memory[5] < 0.0F);
        flip(path, at);
    }
    assert_int_equal(FSDP_OK, fsdp_checkpoint_restore(o.checkpoint, path_of("bits"), NULL, NULL));
    for (size_t i = 0; i < ROWS * 4; i++) {
        assert_true(memory[i] == (float)(i * 4 + (size_t)o.rank));
    }
    free(memory);
    close_all(&o);
}

/* ---- with a model -------------------------------------------------------------------------------------------------- */

static void model_and_arrays_are_one_checkpoint(void **state)
{
    fsdp_model_options          options = FSDP_MODEL_OPTIONS_DEFAULT;
    const fsdp_checkpoint_state three   = {.step = 3};
    const size_t                shape   = 5 * (size_t)fsdp_test_size();
    const fsdp_box              box     = {.offset = {5 * (size_t)fsdp_test_rank()}, .extent = {5}};
    int64_t                     held[5], time = 12;
    fsdp_checkpoint_state       read;
    fsdp_checkpoint            *checkpoint;
    saved_model                 m;
    uint64_t                    trained, loaded;

    (void)state;
    options.seed = 7;
    assert_true(saved_model_open(&m, fsdp_test_size(), &options, FSDP_ADAMW));
    saved_model_train(&m, 0, 3);
    assert_int_equal(FSDP_OK, fsdp_checkpoint_open(m.model, m.optimizer, path_of("model"), NULL, &checkpoint));
    assert_int_equal(FSDP_OK, fsdp_checkpoint_add(checkpoint, "cells", FSDP_I64, 1, &shape, &box, held));
    assert_int_equal(FSDP_OK, fsdp_checkpoint_add(checkpoint, "time", FSDP_I64, 0, NULL, NULL, &time));
    for (int i = 0; i < 5; i++) {
        held[i] = 100 * fsdp_test_rank() + i;
    }
    assert_int_equal(FSDP_OK, fsdp_model_hash(m.model, &trained));
    assert_int_equal(FSDP_OK, fsdp_checkpoint_save(checkpoint, &three));
    saved_model_train(&m, 3, 2);
    memset(held, 0, sizeof held);
    time = 0;
    assert_int_equal(FSDP_OK, fsdp_checkpoint_restore(checkpoint, path_of("model"), NULL, &read));
    assert_int_equal(FSDP_OK, fsdp_model_hash(m.model, &loaded));
    assert_true(trained == loaded);
    assert_int_equal(3, read.step);
    assert_int_equal(3, fsdp_optimizer_steps(m.optimizer));
    assert_int_equal(12, time);
    for (int i = 0; i < 5; i++) {
        assert_int_equal(100 * fsdp_test_rank() + i, held[i]);
    }
    assert_int_equal(FSDP_OK, fsdp_checkpoint_load(m.model, m.optimizer, path_of("model"), NULL, &read));
    assert_int_equal(FSDP_OK, fsdp_checkpoint_close(checkpoint));
    saved_model_close(&m);
}

/* ---- bytes --------------------------------------------------------------------------------------------------------- */

static void bytes_of_rank_0_are_given_back_to_all(void **state)
{
    opened        o   = open_all("bytes");
    const size_t  all = 3;
    unsigned char bytes[40];
    double        values[3] = {1, 2, 3};
    size_t        n         = 0;
    char          path[512];

    (void)state;
    (void)snprintf(path, sizeof path, "%s", path_of("bytes"));
    assert_int_equal(FSDP_ERR_ARG, fsdp_checkpoint_add_bytes(o.checkpoint, "b", bytes, o.rank == 0 ? 0 : 40, &n));
    assert_int_equal(FSDP_ERR_ARG, fsdp_checkpoint_add_bytes(o.checkpoint, "b", bytes, 40, o.rank == 0 ? NULL : &n));
    assert_int_equal(FSDP_OK, fsdp_checkpoint_add_bytes(o.checkpoint, "b", bytes, sizeof bytes, &n));
    assert_int_equal(FSDP_OK, fsdp_checkpoint_add(o.checkpoint, "values", FSDP_F64, 1, &all, NULL, values));
    for (size_t save = 0; save < 4; save++) { /* 0, 13, 26 and 39 bytes */
        n = o.rank == 0 ? 13 * save : 1000;   /* only rank 0's count */
        for (size_t i = 0; i < sizeof bytes; i++) {
            bytes[i] = (unsigned char)(o.rank == 0 ? i * 7 + save : 99);
        }
        assert_int_equal(FSDP_OK, fsdp_checkpoint_save(o.checkpoint, &(fsdp_checkpoint_state){.step = save}));
        memset(bytes, 0xEE, sizeof bytes);
        memset(values, 0, sizeof values);
        n = 77;
        assert_int_equal(FSDP_OK, fsdp_checkpoint_restore(o.checkpoint, path, NULL, NULL));
        assert_int_equal(13 * save, n);
        for (size_t i = 0; i < sizeof bytes; i++) {
            assert_int_equal(i < n ? (unsigned char)(i * 7 + save) : 0xEE, bytes[i]);
        }
        assert_true(values[0] == 1 && values[1] == 2 && values[2] == 3);
    }
    n = 41;
    assert_int_equal(FSDP_ERR_ARG, fsdp_checkpoint_save(o.checkpoint, &(fsdp_checkpoint_state){.step = 9}));
    assert_error(&o, "'b' has 41 bytes, and was added with room for 40");
    close_all(&o);

    o = open_all("bytes-again");
    assert_int_equal(FSDP_OK, fsdp_checkpoint_add_bytes(o.checkpoint, "b", bytes, 38, &n));
    assert_int_equal(FSDP_OK, fsdp_checkpoint_add(o.checkpoint, "values", FSDP_F64, 1, &all, NULL, values));
    assert_int_equal(FSDP_ERR_ARG, fsdp_checkpoint_restore(o.checkpoint, path, NULL, NULL));
    assert_error(&o, "array 'b' is U8 [39] in the file, and was added as U8 [38]");
    close_all(&o);
}

/* ---- faults -------------------------------------------------------------------------------------------------------- */

/* Rank 0 may write a megabyte to a file, of 3 that it needs: the next save, without the limit, is whole. */
static void a_full_disk_leaves_the_last_checkpoint_and_the_arrays(void **state)
{
    enum { ELEMENTS = 3 << 17 };
    opened              o     = open_all("full");
    const size_t        shape = (size_t)ELEMENTS * (size_t)o.size;
    const fsdp_box      box   = {.offset = {(size_t)ELEMENTS * (size_t)o.rank}, .extent = {ELEMENTS}};
    double             *mine  = calloc(ELEMENTS, sizeof *mine);
    const struct rlimit small = {1 << 20, RLIM_INFINITY};
    struct rlimit       before;
    char                path[512];

    (void)state;
    assert_non_null(mine);
    (void)snprintf(path, sizeof path, "%s", path_of("full"));
    mine[7] = 1;
    assert_int_equal(FSDP_OK, fsdp_checkpoint_add(o.checkpoint, "t", FSDP_F64, 1, &shape, &box, mine));
    assert_int_equal(FSDP_OK, fsdp_checkpoint_save(o.checkpoint, &(fsdp_checkpoint_state){.step = 1}));
    mine[7] = 2;
    assert_int_equal(0, getrlimit(RLIMIT_FSIZE, &before));
    if (o.rank == o.size - 1) {
        (void)signal(SIGXFSZ, SIG_IGN);
        assert_int_equal(0, setrlimit(RLIMIT_FSIZE, &small));
    }
    assert_int_equal(FSDP_ERR_IO, fsdp_checkpoint_save(o.checkpoint, &(fsdp_checkpoint_state){.step = 2}));
    assert_int_equal(0, setrlimit(RLIMIT_FSIZE, &before));
    assert_true(mine[7] > 1.5);
    assert_int_equal(FSDP_OK, fsdp_checkpoint_restore(o.checkpoint, path, NULL, NULL));
    assert_true(mine[7] < 1.5);
    assert_int_equal(FSDP_OK, fsdp_checkpoint_save(o.checkpoint, &(fsdp_checkpoint_state){.step = 3}));
    free(mine);
    close_all(&o);
}

/* ---- memory -------------------------------------------------------------------------------------------------------- */

static void the_budget_is_what_is_held(void **state)
{
    fsdp_checkpoint_options options = FSDP_CHECKPOINT_OPTIONS_DEFAULT;
    const size_t            shape   = 1000 * (size_t)fsdp_test_size();
    const fsdp_box          box     = {.offset = {1000 * (size_t)fsdp_test_rank()}, .extent = {1000}};
    fsdp_memory             before, after;
    fsdp_budget             budget = {.total = 0};
    fsdp_checkpoint        *checkpoint;
    fsdp_context           *ctx;
    MPI_Comm                comm;
    double                  memory[1000] = {0};

    (void)state;
    options.asynchronous = 1;
    assert_true(open_context(fsdp_test_size(), &comm, &ctx));
    assert_int_equal(FSDP_OK, fsdp_memory_usage(ctx, &before));
    assert_int_equal(FSDP_OK, fsdp_checkpoint_open_folder(ctx, path_of("budget"), &options, &checkpoint));
    assert_int_equal(FSDP_OK, fsdp_checkpoint_add(checkpoint, "t", FSDP_F64, 1, &shape, &box, memory));
    assert_int_equal(FSDP_OK, fsdp_checkpoint_save(checkpoint, &(fsdp_checkpoint_state){.step = 1}));
    assert_int_equal(FSDP_OK, fsdp_memory_usage(ctx, &after));
    assert_int_equal(FSDP_OK, fsdp_checkpoint_budget(checkpoint, &budget));
    for (int kind = 0; kind < FSDP_N_MEMORY_KINDS; kind++) {
        assert_int_equal(after.current[kind] - before.current[kind], budget.bytes[kind]);
    }
    assert_true(budget.bytes[FSDP_MEMORY_STAGING] >= sizeof memory);
    assert_int_equal(FSDP_OK, fsdp_checkpoint_close(checkpoint));
    close_context(&comm, ctx);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(any_tiling_on_any_ranks_is_read_into_any_other),
        cmocka_unit_test(boxes_that_overlap_are_named_on_every_rank),
        cmocka_unit_test(elements_in_no_box_are_named_on_every_rank),
        cmocka_unit_test(a_hole_as_large_as_an_overlap_is_found),
        cmocka_unit_test(bad_arguments_fail_on_every_rank),
        cmocka_unit_test(what_does_not_fit_is_named_and_nothing_changes),
        cmocka_unit_test(a_replicated_array_that_differs_is_found_under_full_verification),
        cmocka_unit_test(a_flipped_bit_is_found_wherever_it_is),
        cmocka_unit_test(model_and_arrays_are_one_checkpoint),
        cmocka_unit_test(bytes_of_rank_0_are_given_back_to_all),
        cmocka_unit_test(a_full_disk_leaves_the_last_checkpoint_and_the_arrays),
        cmocka_unit_test(the_budget_is_what_is_held),
    };

    return fsdp_test_main(argc, argv, tests, saved_folder_make, saved_folder_remove);
}
