/*
 * States in the caches of nodes. Here two ranks are a node, each node has a folder of its own, and a run ends without a save of its
 * last steps: what the next one finds is compared, byte for byte, with the files of a save.
 */
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "shard/checkpoint/cache/cache_file.h"
#include "tests/shard/checkpoint/saved_model.h"

enum { NODE_RANKS = 2, MOST_BYTES = 1 << 20, PATH_BYTES = 1024 };

#define CLEAR_NODE "for f in %s/node-%d/*; do rm -rf \"$f\"; done"

static int n_nodes(void)
{
    return (fsdp_test_size() + NODE_RANKS - 1) / NODE_RANKS;
}

/* ---- nodes and their folders ------------------------------------------------------------------------------------------ */

/* Of this rank's node, or of all: then whoever is there finds everything. */
static void use_node_folder(int alone)
{
    char path[PATH_BYTES];

    (void)snprintf(path, sizeof path, "%s/node-%d", saved_folder, alone ? 0 : fsdp_test_rank() / NODE_RANKS);
    assert_true(mkdir(path, 0700) == 0 || errno == EEXIST);
    assert_int_equal(0, setenv("FSDP_CHECKPOINT_CACHE", path, 1));
    MPI_Barrier(MPI_COMM_WORLD);
}

static void on_first(const char *format, ...) __attribute__((format(printf, 1, 2)));
static void on_first(const char *format, ...)
{
    char    command[4 * PATH_BYTES];
    va_list arguments;

    MPI_Barrier(MPI_COMM_WORLD);
    if (fsdp_test_rank() == 0) {
        va_start(arguments, format);
        (void)vsnprintf(command, sizeof command, format, arguments);
        va_end(arguments);
        assert_int_equal(0, system(command));
    }
    MPI_Barrier(MPI_COMM_WORLD);
}

static void lose_node(int node)
{
    on_first(CLEAR_NODE, saved_folder, node);
}

static void lose_all(void)
{
    for (int node = 0; node < n_nodes(); node++) {
        lose_node(node);
    }
}

/* Files in all nodes' folders whose names fit. */
static int count_files(const char *pattern)
{
    char command[2 * PATH_BYTES];
    int  n = -1;

    MPI_Barrier(MPI_COMM_WORLD);
    if (fsdp_test_rank() == 0) {
        (void)snprintf(command, sizeof command, "find %s/node-* -name '%s' | wc -l", saved_folder, pattern);
        FILE *f = popen(command, "r");
        assert_non_null(f);
        assert_int_equal(1, fscanf(f, "%d", &n));
        assert_int_equal(0, pclose(f));
    }
    MPI_Bcast(&n, 1, MPI_INT, 0, MPI_COMM_WORLD);
    return n;
}

/* ---- a run -------------------------------------------------------------------------------------------------------------- */

static const char *path_of(const char *name)
{
    static char path[PATH_BYTES];

    (void)snprintf(path, sizeof path, "%s/%s", saved_folder, name);
    return path;
}

typedef struct run {
    saved_model      m;
    fsdp_checkpoint *checkpoint;
} run;

static fsdp_checkpoint_state at_step(uint64_t step)
{
    return (fsdp_checkpoint_state){
        .step = step, .epoch = 1, .sample = 77, .seed = 0xfedcba9876543210u, .text = "a \"line\""};
}

static void open_model(saved_model *m)
{
    fsdp_model_options options = FSDP_MODEL_OPTIONS_DEFAULT;

    options.seed = 7;
    assert_true(saved_model_open(m, fsdp_test_size(), &options, FSDP_ADAMW));
}

static fsdp_status try_open(run *r, const char *name)
{
    fsdp_checkpoint_options options = FSDP_CHECKPOINT_OPTIONS_DEFAULT;

    options.cached    = 1;
    options.keep_last = 0;
    return fsdp_checkpoint_open(r->m.model, r->m.optimizer, path_of(name), &options, &r->checkpoint);
}

static void begin(run *r, const char *name)
{
    open_model(&r->m);
    assert_int_equal(FSDP_OK, try_open(r, name));
}

static void end(run *r)
{
    assert_int_equal(FSDP_OK, fsdp_checkpoint_close(r->checkpoint));
    saved_model_close(&r->m);
    MPI_Barrier(MPI_COMM_WORLD);
}

static void cache_at(run *r, uint64_t step)
{
    const fsdp_checkpoint_state state = at_step(step);

    assert_int_equal(FSDP_OK, fsdp_checkpoint_cache(r->checkpoint, &state));
}

/* Trains to `last`, and caches behind step number `first` and each that follows; saves none of them. */
static void train_and_cache(const char *name, uint64_t first, uint64_t last)
{
    run r;

    begin(&r, name);
    for (uint64_t step = 1; step <= last; step++) {
        saved_model_train(&r.m, step - 1, 1);
        assert_int_equal(FSDP_OK, fsdp_checkpoint_progress(r.checkpoint, NULL));
        if (step >= first) {
            cache_at(&r, step);
        }
    }
    end(&r);
}

/* What a save of that step is, in a folder of its own. */
static void train_and_save(const char *name, uint64_t last)
{
    const fsdp_checkpoint_state state = at_step(last);
    fsdp_checkpoint            *checkpoint;
    saved_model                 m;

    open_model(&m);
    saved_model_train(&m, 0, last);
    assert_int_equal(FSDP_OK, fsdp_checkpoint_open(m.model, m.optimizer, path_of(name), NULL, &checkpoint));
    assert_int_equal(FSDP_OK, fsdp_checkpoint_save(checkpoint, &state));
    assert_int_equal(FSDP_OK, fsdp_checkpoint_close(checkpoint));
    saved_model_close(&m);
    MPI_Barrier(MPI_COMM_WORLD);
}

/* The step of the latest checkpoint in a folder, once a program that caches has opened it; -1: there is none. */
static int64_t reopened(const char *name)
{
    char    path[FSDP_CHECKPOINT_PATH_BYTES];
    int64_t step = -1;
    run     r;

    begin(&r, name);
    assert_int_equal(FSDP_OK, fsdp_checkpoint_latest(r.m.ctx, path_of(name), path, sizeof path));
    if (path[0] != '\0') {
        assert_int_equal(1, sscanf(strrchr(path, '/'), "/step-%" SCNd64, &step));
        assert_int_equal(FSDP_OK, fsdp_checkpoint_restore(r.checkpoint, path, NULL, NULL));
    }
    end(&r);
    return step;
}

static void assert_same_folders(const char *a, const char *b, uint64_t step)
{
    on_first("diff -r %s/%s/step-%09d %s/%s/step-%09d", saved_folder, a, (int)step, saved_folder, b, (int)step);
}

/* ---- found again ---------------------------------------------------------------------------------------------------------- */

static void what_is_cached_becomes_the_checkpoint_that_a_save_would_have_been(void **state)
{
    (void)state;
    use_node_folder(0);
    train_and_save("plain", 3);
    train_and_cache("run", 2, 3);
    assert_int_equal(2 * fsdp_test_size(), count_files("own-*"));
    assert_int_equal(n_nodes() > 1 ? 2 * fsdp_test_size() : 0, count_files("copy-*"));
    assert_int_equal(3, reopened("run"));
    assert_same_folders("plain", "run", 3);
    assert_int_equal(0, count_files("fsdp-cache-*"));
}

/* Whichever it is: its partner has the copies. With one node there is none. */
static void a_lost_node_is_recovered_from_its_partner(void **state)
{
    (void)state;
    use_node_folder(0);
    train_and_save("plain-4", 4);
    for (int node = 0; node < n_nodes() && n_nodes() > 1; node++) {
        train_and_cache("lost", 3, 4);
        lose_node(node);
        assert_int_equal(4, reopened("lost"));
        assert_same_folders("plain-4", "lost", 4);
        on_first("rm -rf %s/lost", saved_folder);
    }
}

static void of_two_lost_partners_the_last_save_is_left(void **state)
{
    const fsdp_checkpoint_state two = at_step(2);
    run                         r;

    (void)state;
    use_node_folder(0);
    begin(&r, "both");
    saved_model_train(&r.m, 0, 2);
    assert_int_equal(FSDP_OK, fsdp_checkpoint_save(r.checkpoint, &two));
    saved_model_train(&r.m, 2, 1);
    cache_at(&r, 3);
    end(&r);
    lose_node(0);
    if (n_nodes() > 1) {
        lose_node(1);
    }
    fsdp_test_capture_stderr();
    const int64_t step = reopened("both");
    assert_int_equal(n_nodes() > 2 ? 1 : 0, fsdp_test_times_printed("is cached, but not whole"));
    assert_int_equal(2, step);
}

/* All folders are one here: so any rank finds any file. */
static void any_number_of_ranks_takes_it_over(void **state)
{
    fsdp_checkpoint_options cached  = FSDP_CHECKPOINT_OPTIONS_DEFAULT;
    fsdp_model_options      options = FSDP_MODEL_OPTIONS_DEFAULT;
    run                     r;

    (void)state;
    use_node_folder(1);
    train_and_cache("fewer", 3, 3);
    options.strategy = FSDP_NO_SHARD;
    cached.cached    = 1;
    if (saved_model_open(&r.m, 1, &options, FSDP_ADAMW)) {
        fsdp_checkpoint_state found;

        assert_int_equal(FSDP_OK,
                         fsdp_checkpoint_open(r.m.model, r.m.optimizer, path_of("fewer"), &cached, &r.checkpoint));
        assert_int_equal(FSDP_OK, fsdp_checkpoint_restore(r.checkpoint, path_of("fewer"), NULL, &found));
        assert_int_equal(3, found.step);
        assert_int_equal(fsdp_test_size(), found.ranks);
        assert_int_equal(FSDP_OK, fsdp_checkpoint_close(r.checkpoint));
        saved_model_close(&r.m);
    }
    assert_same_folders("plain", "fewer", 3);
}

/* ---- damage --------------------------------------------------------------------------------------------------------------- */

/* Changes a byte of all files of a rank's that have this step in their heads: own ones, or copies too. `at` -1: of the image. */
static void damage(const char *kinds, int rank, uint64_t step, long at)
{
    char  path[PATH_BYTES], command[2 * PATH_BYTES];
    FILE *names;

    MPI_Barrier(MPI_COMM_WORLD);
    if (fsdp_test_rank() == 0) {
        (void)snprintf(command, sizeof command, "find %s/node-* -name '%s-%08d-*'", saved_folder, kinds, rank);
        names = popen(command, "r");
        assert_non_null(names);
        while (fscanf(names, "%1023s", path) == 1) {
            fsdpi_cache_head head;
            FILE            *f = fopen(path, "r+b");

            assert_non_null(f);
            assert_int_equal(1, fread(&head, sizeof head, 1, f));
            if (head.step == step) {
                const long place = at >= 0 ? at : (long)(FSDPI_CACHE_HEAD_BYTES + head.image_bytes / 2);

                assert_int_equal(0, fseek(f, place, SEEK_SET));
                const int byte = fgetc(f);
                assert_int_equal(0, fseek(f, place, SEEK_SET));
                assert_true(fputc(byte ^ 16, f) != EOF);
            }
            assert_int_equal(0, fclose(f));
        }
        assert_int_equal(0, pclose(names));
    }
    MPI_Barrier(MPI_COMM_WORLD);
}

/* -1: in the middle of the image. */
static const long places[] = {offsetof(fsdpi_cache_head, sum), offsetof(fsdpi_cache_head, generation), 1, -1};

static void of_a_damaged_file_the_copy_is_taken(void **state)
{
    (void)state;
    use_node_folder(0);
    for (size_t i = 0; i < sizeof places / sizeof places[0] && n_nodes() > 1; i++) {
        train_and_cache("flip", 3, 4);
        damage("own", 0, 4, places[i]); /* the lowest rank that has a good one is asked first */
        fsdp_test_capture_stderr();
        const int64_t step = reopened("flip");
        assert_int_equal(1, fsdp_test_times_printed("it is left out"));
        assert_int_equal(4, step);
        assert_same_folders("plain-4", "flip", 4);
        on_first("rm -rf %s/flip", saved_folder);
    }
}

static void of_a_damaged_generation_the_one_before_is_taken(void **state)
{
    (void)state;
    use_node_folder(0);
    for (size_t i = 0; i < sizeof places / sizeof places[0]; i++) {
        train_and_cache("older", 2, 4);
        damage("*", 0, 4, places[i]);
        assert_int_equal(3, reopened("older"));
        assert_same_folders("plain", "older", 3);
        on_first("rm -rf %s/older", saved_folder);
    }
}

static void set_sum(const char *path)
{
    const uint64_t none = 0;
    FILE          *f    = fopen(path, "r+b");

    assert_non_null(f);
    assert_int_equal(0, fseek(f, offsetof(fsdpi_cache_head, sum), SEEK_SET));
    assert_int_equal(1, fwrite(&none, sizeof none, 1, f));
    assert_int_equal(0, fclose(f));
}

/* As a rank leaves it that is killed while it copies: the sum, which is written last, is 0. */
static void a_generation_that_was_not_finished_is_none(void **state)
{
    char  path[PATH_BYTES], command[2 * PATH_BYTES];
    FILE *names;

    (void)state;
    use_node_folder(0);
    train_and_cache("half", 2, 4); /* generations 1 to 3: step 4 is in slot 1 */
    MPI_Barrier(MPI_COMM_WORLD);
    if (fsdp_test_rank() == 0) {
        (void)snprintf(command, sizeof command, "find %s/node-* -name '*-00000000-1'", saved_folder);
        names = popen(command, "r");
        assert_non_null(names);
        while (fscanf(names, "%1023s", path) == 1) {
            set_sum(path);
        }
        assert_int_equal(0, pclose(names));
    }
    fsdp_test_capture_stderr();
    const int64_t step = reopened("half");
    assert_int_equal(fsdp_test_size() > 1, fsdp_test_times_printed("is cached, but not whole"));
    assert_int_equal(3, step);
    assert_same_folders("plain", "half", 3);
}

/* ---- what does not count --------------------------------------------------------------------------------------------------- */

static void caches_of_another_run_are_removed(void **state)
{
    (void)state;
    use_node_folder(0);
    train_and_cache("again", 3, 3);
    on_first("rm -rf %s/again", saved_folder);
    assert_int_equal(-1, reopened("again"));
    assert_int_equal(0, count_files("fsdp-cache-*"));
}

static void what_is_not_newer_than_latest_does_not_count(void **state)
{
    const fsdp_checkpoint_state four = at_step(4);
    run                         r;

    (void)state;
    use_node_folder(0);
    train_and_cache("old", 3, 3);
    on_first("cp -r %s/node-0 %s/kept", saved_folder, saved_folder);
    assert_int_equal(3, reopened("old"));
    begin(&r, "old");
    assert_int_equal(FSDP_OK, fsdp_checkpoint_save(r.checkpoint, &four));
    end(&r);
    on_first("cp -r %s/kept/. %s/node-0 && rm -rf %s/kept", saved_folder, saved_folder, saved_folder);
    assert_int_equal(4, reopened("old"));
}

/* The user wants to go on from step 1: what came behind it is not brought back. */
static void latest_that_was_set_back_stays_so(void **state)
{
    run r;

    (void)state;
    use_node_folder(0);
    begin(&r, "back");
    for (uint64_t step = 1; step <= 2; step++) {
        const fsdp_checkpoint_state here = at_step(step);

        saved_model_train(&r.m, step - 1, 1);
        assert_int_equal(FSDP_OK, fsdp_checkpoint_save(r.checkpoint, &here));
    }
    cache_at(&r, 3);
    end(&r);
    on_first("echo step-000000001 > %s/back/latest", saved_folder);
    assert_int_equal(1, reopened("back"));
}

/* ---- what is wrong ----------------------------------------------------------------------------------------------------------- */

static void assert_refused(const char *name, fsdp_status status, const char *words)
{
    run r;

    open_model(&r.m);
    assert_int_equal(status, try_open(&r, name));
    assert_says(r.m.ctx, words);
    assert_says(r.m.ctx, "FSDP_CHECKPOINT_CACHE");
    assert_null(r.checkpoint);
    saved_model_close(&r.m);
    MPI_Barrier(MPI_COMM_WORLD);
}

static void a_folder_that_cannot_be_used_is_named(void **state)
{
    (void)state;
    use_node_folder(0);
    if (fsdp_test_rank() == fsdp_test_size() - 1) {
        assert_int_equal(0, setenv("FSDP_CHECKPOINT_CACHE", "/proc/nowhere", 1));
    }
    assert_refused("refused", FSDP_ERR_IO, "/proc/nowhere");
    assert_int_equal(0, setenv("FSDP_CHECKPOINT_CACHE", "relative", 1));
    assert_refused("refused", FSDP_ERR_ARG, "relative");
}

/* A limit on the length of files stands for a file system that is full. */
static void a_full_folder_is_named_and_left_as_it_was(void **state)
{
    struct rlimit before, small = {.rlim_cur = 16 << 10};
    run           r;

    (void)state;
    use_node_folder(0);
    open_model(&r.m);
    assert_int_equal(0, getrlimit(RLIMIT_FSIZE, &before));
    small.rlim_max = before.rlim_max;
    (void)signal(SIGXFSZ, SIG_IGN);
    if (fsdp_test_rank() == 0) {
        assert_int_equal(0, setrlimit(RLIMIT_FSIZE, &small));
    }
    assert_int_equal(FSDP_ERR_IO, try_open(&r, "full"));
    assert_int_equal(0, setrlimit(RLIMIT_FSIZE, &before));
    assert_says(r.m.ctx, "no room for a cache");
    assert_says(r.m.ctx, "FSDP_CHECKPOINT_CACHE");
    saved_model_close(&r.m);
    assert_int_equal(0, count_files("own-*"));
}

static void without_cached_it_is_refused_and_switched_off_it_does_nothing(void **state)
{
    const fsdp_checkpoint_state one = at_step(1);
    run                         r;

    (void)state;
    use_node_folder(0);
    open_model(&r.m);
    assert_int_equal(FSDP_OK, fsdp_checkpoint_open(r.m.model, NULL, path_of("off"), NULL, &r.checkpoint));
    assert_int_equal(FSDP_ERR_STATE, fsdp_checkpoint_cache(r.checkpoint, &one));
    assert_says(r.m.ctx, "`cached`");
    end(&r);
    assert_int_equal(0, setenv("FSDP_CHECKPOINT_CACHE", "off", 1));
    begin(&r, "off");
    assert_int_equal(FSDP_OK, fsdp_checkpoint_cache(r.checkpoint, &one));
    assert_int_equal(FSDP_ERR_ARG, fsdp_checkpoint_cache(r.checkpoint, NULL));
    end(&r);
    assert_int_equal(0, count_files("fsdp-cache-*"));
}

/* ---- memory, and what is left ------------------------------------------------------------------------------------------------ */

static void caches_are_in_the_budget(void **state)
{
    fsdp_memory memory;
    fsdp_budget budget = {.total = 0};
    run         r;

    (void)state;
    assert_int_equal(0, setenv("FSDP_CHECKPOINT_CACHE", "/dev/shm", 1));
    open_model(&r.m);
    assert_int_equal(FSDP_OK, fsdp_memory_usage(r.m.ctx, &memory));
    const size_t before = memory.current[FSDP_MEMORY_STAGING];
    assert_int_equal(FSDP_OK, try_open(&r, "budget"));
    cache_at(&r, 1);
    assert_int_equal(FSDP_OK, fsdp_checkpoint_budget(r.checkpoint, &budget));
    assert_int_equal(FSDP_OK, fsdp_memory_usage(r.m.ctx, &memory));
    /* A save takes the rest while it is under way. */
    assert_int_equal(budget.bytes[FSDP_MEMORY_STAGING] - (FSDP_CHECKPOINT_SCRATCH_BYTES),
                     memory.current[FSDP_MEMORY_STAGING] - before);
    assert_true(memory.current[FSDP_MEMORY_STAGING] - before > 0);
    const fsdp_checkpoint_state one = at_step(1);
    assert_int_equal(FSDP_OK, fsdp_checkpoint_save(r.checkpoint, &one));
    end(&r);
}

static void nothing_is_left_behind_a_save_of_the_last_step(void **state)
{
    const fsdp_checkpoint_state three = at_step(3);
    run                         r;

    (void)state;
    use_node_folder(0);
    begin(&r, "done");
    cache_at(&r, 2);
    cache_at(&r, 3);
    assert_int_equal(2 * fsdp_test_size(), count_files("own-*"));
    assert_int_equal(FSDP_OK, fsdp_checkpoint_save(r.checkpoint, &three));
    end(&r);
    assert_int_equal(0, count_files("fsdp-cache-*"));
}

/* Messages go on in calls that come once per step: without another call the copies are there in the end. */
static void copies_follow_behind_steps(void **state)
{
    char path[PATH_BYTES], command[2 * PATH_BYTES];
    int  there = n_nodes() == 1;
    run  r;

    (void)state;
    use_node_folder(0);
    begin(&r, "behind");
    cache_at(&r, 1);
    for (int step = 0; step < 10000 && !there; step++) {
        assert_int_equal(FSDP_OK, fsdp_checkpoint_progress(r.checkpoint, NULL));
        if (fsdp_test_rank() == 0 && step >= 8) {
            fsdpi_cache_head head = {.sum = 0};

            (void)snprintf(command, sizeof command, "find %s/node-* -name 'copy-00000000-1'", saved_folder);
            FILE *name = popen(command, "r");
            assert_non_null(name);
            assert_int_equal(1, fscanf(name, "%1023s", path));
            assert_int_equal(0, pclose(name));
            FILE *f = fopen(path, "rb");
            assert_non_null(f);
            assert_int_equal(1, fread(&head, sizeof head, 1, f));
            assert_int_equal(0, fclose(f));
            there = head.sum != 0;
        }
        MPI_Bcast(&there, 1, MPI_INT, 0, MPI_COMM_WORLD);
    }
    assert_true(there);
    end(&r);
    lose_all();
}

/* ---- what else a checkpoint has ------------------------------------------------------------------------------------------------ */

enum { COLUMNS = 3, ROWS = 5, PARTICLES = 7, ROOM = 32 };

/* A box of columns, rows known by numbers, and bytes of rank 0. */
typedef struct simulation {
    double      field[ROWS * COLUMNS];
    int64_t     ids[PARTICLES];
    float       x[PARTICLES];
    const void *columns[1];
    size_t      n, n_bytes;
    char        bytes[ROOM];
} simulation;

static void add_simulation(fsdp_checkpoint *checkpoint, simulation *s)
{
    const size_t      shape[2] = {ROWS, COLUMNS * (size_t)fsdp_test_size()};
    const fsdp_box    box      = {.offset = {0, COLUMNS * (size_t)fsdp_test_rank()}, .extent = {ROWS, COLUMNS}};
    const fsdp_column column   = {"x", FSDP_F32, 1};

    assert_int_equal(FSDP_OK, fsdp_checkpoint_add(checkpoint, "field", FSDP_F64, 2, shape, &box, s->field));
    assert_int_equal(FSDP_OK, fsdp_checkpoint_add_rows(checkpoint, "swarm", 1, &column));
    assert_int_equal(FSDP_OK, fsdp_checkpoint_add_bytes(checkpoint, "bytes", s->bytes, sizeof s->bytes, &s->n_bytes));
}

static void set_simulation(fsdp_checkpoint *checkpoint, simulation *s, size_t step)
{
    s->columns[0] = s->x;
    s->n          = step % 2 == 0 ? PARTICLES : PARTICLES - 2;
    for (size_t i = 0; i < ROWS * COLUMNS; i++) {
        s->field[i] = (double)(step * 1000 + i * 10) + fsdp_test_rank();
    }
    for (size_t i = 0; i < s->n; i++) {
        s->ids[i] = (int64_t)((PARTICLES - i) * (size_t)fsdp_test_size()) + fsdp_test_rank();
        s->x[i]   = (float)s->ids[i] + (float)step;
    }
    s->n_bytes = 3 + step;
    memset(s->bytes, (int)('a' + step), sizeof s->bytes);
    assert_int_equal(FSDP_OK, fsdp_checkpoint_set_rows(checkpoint, "swarm", s->n, s->ids, s->columns));
}

static fsdp_context *open_simulation(const char *name, fsdp_checkpoint **checkpoint, simulation *s)
{
    fsdp_checkpoint_options options = FSDP_CHECKPOINT_OPTIONS_DEFAULT;
    fsdp_context           *ctx;

    options.cached       = 1;
    options.asynchronous = 1;
    assert_int_equal(FSDP_OK, fsdp_init(MPI_COMM_WORLD, NULL, &ctx));
    assert_int_equal(FSDP_OK, fsdp_checkpoint_open_folder(ctx, path_of(name), &options, checkpoint));
    add_simulation(*checkpoint, s);
    return ctx;
}

static void close_simulation(fsdp_context *ctx, fsdp_checkpoint *checkpoint)
{
    assert_int_equal(FSDP_OK, fsdp_checkpoint_close(checkpoint));
    assert_int_equal(FSDP_OK, fsdp_finalize(ctx));
}

static void the_programs_own_state_is_cached_too(void **state)
{
    simulation       s = {.n = 0};
    fsdp_checkpoint *checkpoint;
    fsdp_context    *ctx;

    (void)state;
    use_node_folder(0);
    ctx = open_simulation("own", &checkpoint, &s);
    for (size_t step = 1; step <= 4; step++) {
        const fsdp_checkpoint_state here = at_step(step);

        set_simulation(checkpoint, &s, step);
        if (step == 2) {
            assert_int_equal(FSDP_OK, fsdp_checkpoint_save_async(checkpoint, &here));
        } else {
            assert_int_equal(FSDP_OK, fsdp_checkpoint_cache(checkpoint, &here));
        }
    }
    close_simulation(ctx, checkpoint);
    if (n_nodes() > 1) {
        lose_node(n_nodes() - 1);
    }
    ctx = open_simulation("own", &checkpoint, &s);
    close_simulation(ctx, checkpoint);

    const fsdp_checkpoint_state four = at_step(4);
    ctx                              = open_simulation("own-plain", &checkpoint, &s);
    set_simulation(checkpoint, &s, 4);
    assert_int_equal(FSDP_OK, fsdp_checkpoint_save(checkpoint, &four));
    close_simulation(ctx, checkpoint);
    assert_same_folders("own-plain", "own", 4);
}

static const struct CMUnitTest cache[] = {
    cmocka_unit_test(what_is_cached_becomes_the_checkpoint_that_a_save_would_have_been),
    cmocka_unit_test(a_lost_node_is_recovered_from_its_partner),
    cmocka_unit_test(of_two_lost_partners_the_last_save_is_left),
    cmocka_unit_test(any_number_of_ranks_takes_it_over),
    cmocka_unit_test(of_a_damaged_file_the_copy_is_taken),
    cmocka_unit_test(of_a_damaged_generation_the_one_before_is_taken),
    cmocka_unit_test(a_generation_that_was_not_finished_is_none),
    cmocka_unit_test(caches_of_another_run_are_removed),
    cmocka_unit_test(what_is_not_newer_than_latest_does_not_count),
    cmocka_unit_test(latest_that_was_set_back_stays_so),
    cmocka_unit_test(a_folder_that_cannot_be_used_is_named),
    cmocka_unit_test(a_full_folder_is_named_and_left_as_it_was),
    cmocka_unit_test(without_cached_it_is_refused_and_switched_off_it_does_nothing),
    cmocka_unit_test(caches_are_in_the_budget),
    cmocka_unit_test(nothing_is_left_behind_a_save_of_the_last_step),
    cmocka_unit_test(copies_follow_behind_steps),
    cmocka_unit_test(the_programs_own_state_is_cached_too),
};

int main(int argc, char **argv)
{
    (void)setenv("FSDP_NODE_SIZE", "2", 1);
    return fsdp_test_main(argc, argv, cache, saved_folder_make, saved_folder_remove);
}
