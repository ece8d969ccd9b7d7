#define _XOPEN_SOURCE 700
/*
 * Random models, trained by the library and by a serial reference that shares no code with it: the same bits.
 *
 *   mpirun -n 3 test_shard_random_models [--seed S] [--models N] [--features BITS] [--describe]
 *
 * Models have the seeds S, S + 1 and so on. The first one that differs ends the test: it is tried without each of its
 * features in turn, and what is left is printed with the command that repeats it.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/shard/random/library.h"
#include "tests/shard/random/saved_files.h"
#include "tests/support/mpi_test.h"

static struct options {
    uint64_t    seed, models, features;
    int         describe;
    const char *program;
} options = {.seed = 1, .models = 40, .features = ALL_FEATURES};

static char folder[256];

static void make_folder(void)
{
    if (fsdp_test_rank() == 0) {
        const char *parent = getenv("TMPDIR");

        (void)snprintf(folder, sizeof folder, "%s/fsdp-random-XXXXXX", parent != NULL ? parent : "/tmp");
        assert_non_null(mkdtemp(folder));
    }
    MPI_Bcast(folder, (int)sizeof folder, MPI_CHAR, 0, MPI_COMM_WORLD);
}

static void write_command(char *text, size_t size, uint64_t seed, uint64_t features)
{
    const char *where = getenv("MODEL_ON_DEVICE");

    (void)snprintf(text, size, "%s%s%smpirun -n %d %s --seed %" PRIu64 " --models 1 --features 0x%" PRIx64,
                   where != NULL ? "MODEL_ON_DEVICE=" : "", where != NULL ? where : "", where != NULL ? " " : "",
                   fsdp_test_size(), options.program, seed, features);
}

/* Whether all ranks see the same in the library as in the reference. `finding`: of the lowest that does not. */
static int agrees(random_model *m, uint64_t seed, uint64_t features, char finding[FINDING_BYTES])
{
    char command[512], own[320];
    int  differs, lowest = fsdp_test_size(), mine;

    (void)snprintf(own, sizeof own, "%s/%" PRIu64 "-%" PRIx64, folder, seed, features);
    write_command(command, sizeof command, seed, features);
    draw_random_model(m, seed, fsdp_test_size(), features);
    differs = train_and_compare(m, own, command, finding) > 0;
    mine    = differs ? fsdp_test_rank() : fsdp_test_size();
    MPI_Allreduce(&mine, &lowest, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
    if (lowest < fsdp_test_size()) {
        MPI_Bcast(finding, FINDING_BYTES, MPI_CHAR, lowest, MPI_COMM_WORLD);
    }
    if (fsdp_test_rank() == 0) {
        remove_folder(own);
    }
    return lowest == fsdp_test_size();
}

/* The features that are needed for a difference. */
static uint64_t shrink(random_model *m, uint64_t seed, uint64_t features)
{
    char finding[FINDING_BYTES];

    for (int f = 0; f < N_FEATURES; f++) {
        const uint64_t fewer = features & ~(UINT64_C(1) << f);

        if (fewer != features && !agrees(m, seed, fewer, finding)) {
            features = fewer;
        }
    }
    return features;
}

static void report(random_model *m, uint64_t seed, uint64_t features, const char *finding)
{
    char           command[512], last[FINDING_BYTES];
    const uint64_t fewest = shrink(m, seed, features);

    (void)agrees(m, seed, fewest, last);
    if (fsdp_test_rank() != 0) {
        return;
    }
    write_command(command, sizeof command, seed, features);
    (void)fprintf(stderr, "model %" PRIu64 " of seed %" PRIu64 " differs from the reference: %s\n  repeat with %s\n",
                  seed - options.seed + 1, seed, finding, command);
    write_command(command, sizeof command, seed, fewest);
    (void)fprintf(stderr, "with as few features as show a difference: %s\n  repeat with %s\n", last, command);
    for (int f = 0; f < N_FEATURES; f++) {
        if ((fewest >> f & 1) != 0) {
            (void)fprintf(stderr, "  with %s\n", feature_text((feature)f));
        }
    }
    describe_random_model(stderr, m);
}

static void random_models_train_as_the_reference_does(void **state)
{
    random_model *m = malloc(sizeof *m);
    char          finding[FINDING_BYTES];
    uint64_t      done = 0;

    (void)state;
    assert_non_null(m);
    make_folder();
    while (done < options.models && agrees(m, options.seed + done, options.features, finding)) {
        done++;
        if (options.describe && fsdp_test_rank() == 0) {
            describe_random_model(stdout, m);
        }
    }
    if (done < options.models) {
        report(m, options.seed + done, options.features, finding);
    }
    if (fsdp_test_rank() == 0) {
        remove_folder(folder);
        printf("%" PRIu64 " of %" PRIu64 " models are as the reference\n", done, options.models);
    }
    free(m);
    assert_int_equal(options.models, done);
}

static const char *value_of(int argc, char **argv, int *i)
{
    if (++*i >= argc) {
        (void)fprintf(stderr, "%s needs a value\n", argv[*i - 1]);
        exit(2);
    }
    return argv[*i];
}

static void read_options(int argc, char **argv)
{
    options.program = argv[0];
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--describe") == 0) {
            options.describe = 1;
        } else if (strcmp(argv[i], "--seed") == 0) {
            options.seed = strtoull(value_of(argc, argv, &i), NULL, 0);
        } else if (strcmp(argv[i], "--models") == 0) {
            options.models = strtoull(value_of(argc, argv, &i), NULL, 0);
        } else if (strcmp(argv[i], "--features") == 0) {
            options.features = strtoull(value_of(argc, argv, &i), NULL, 0) & ALL_FEATURES;
        } else {
            (void)fprintf(stderr, "'%s' is unknown; use --seed, --models, --features or --describe\n", argv[i]);
            exit(2);
        }
    }
}

#define BIT(feature) (UINT64_C(1) << (feature))

/* What models on a GPU do not have. */
static uint64_t features_here(void)
{
#ifdef FSDP_TESTS_MODEL_ON_DEVICE_H
    const char    *where     = getenv("MODEL_ON_DEVICE");
    const uint64_t offloaded = where != NULL && strcmp(where, "offloaded") == 0 ? BIT(WITH_CUSTOM_GRANULARITY) : 0;

    return ALL_FEATURES & ~(BIT(WITH_MUON) | BIT(WITH_MOMENTS_8_BIT) | offloaded);
#else
    return ALL_FEATURES;
#endif
}

int main(int argc, char **argv)
{
    static const struct CMUnitTest tests[] = {cmocka_unit_test(random_models_train_as_the_reference_does)};

    read_options(argc, argv);
    options.features &= features_here();
    (void)unsetenv("CMOCKA_TEST_ABORT"); /* all ranks fail alike here, and rank 0 says why */
    return fsdp_test_main(argc, argv, tests, NULL, NULL);
}
