/*
 * What the library has to say, to a function of the program.
 */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "fsdp/buffer.h"
#include "fsdp/collectives.h"
#include "tests/support/mpi_test.h"

enum { MOST = 64, BYTES = 512 };

typedef struct lines {
    pthread_mutex_t lock;
    size_t          n;
    fsdp_log_level  level[MOST];
    int             rank[MOST];
    char            text[MOST][BYTES];
} lines;

static void take(void *state, fsdp_log_level level, int rank, const char *text)
{
    lines *l = state;

    pthread_mutex_lock(&l->lock);
    if (l->n < MOST) {
        l->level[l->n] = level;
        l->rank[l->n]  = rank;
        strncpy(l->text[l->n], text, BYTES - 1);
    }
    l->n++;
    pthread_mutex_unlock(&l->lock);
}

static int has(const lines *l, fsdp_log_level level, int rank, const char *words)
{
    for (size_t i = 0; i < l->n && i < MOST; i++) {
        if (l->level[i] == level && l->rank[i] == rank && strstr(l->text[i], words) != NULL) {
            return strchr(l->text[i], '\n') == NULL && strstr(l->text[i], "libfsdp:") == NULL;
        }
    }
    return 0;
}

static void open_lines(lines *l, fsdp_config *config)
{
    memset(l, 0, sizeof *l);
    pthread_mutex_init(&l->lock, NULL);
    fsdp_config_init(config);
    config->log       = take;
    config->log_state = l;
}

/* Nothing of it reaches stderr. */
static void lines_and_errors_go_to_the_function(void **state)
{
    static lines  l;
    fsdp_config   config;
    fsdp_context *ctx;
    char          printed[256];
    float         value = 1.0F;

    (void)state;
    open_lines(&l, &config);
    config.log_level = FSDP_LOG_INFO;
    fsdp_test_capture_stderr();
    const fsdp_status opened  = fsdp_init(MPI_COMM_WORLD, &config, &ctx);
    const fsdp_status refused = opened == FSDP_OK ? fsdp_broadcast(ctx, &value, 1, FSDP_F32, 99) : opened;
    const fsdp_status local   = opened == FSDP_OK ? fsdp_buffer_peer(ctx, NULL, 0, NULL) : opened;
    const int         rank    = fsdp_rank(ctx);
    const fsdp_status closed  = fsdp_finalize(ctx);
    fsdp_test_captured_stderr(printed, sizeof printed);
    assert_int_equal(FSDP_OK, opened);
    assert_int_equal(FSDP_ERR_ARG, refused);
    assert_int_equal(FSDP_ERR_ARG, local);
    assert_int_equal(FSDP_OK, closed);
    assert_string_equal("", printed);
    assert_true(has(&l, FSDP_LOG_INFO, rank, "context opened"));
    assert_true(has(&l, FSDP_LOG_ERROR, rank, "fsdp_buffer_peer"));
    assert_true(rank != 0 || has(&l, FSDP_LOG_ERROR, rank, "99"));
}

static void levels_are_those_of_the_setting(void **state)
{
    static lines  l;
    fsdp_config   config;
    fsdp_context *ctx;

    (void)state;
    open_lines(&l, &config);
    config.log_level = FSDP_LOG_OFF;
    assert_int_equal(FSDP_OK, fsdp_init(MPI_COMM_WORLD, &config, &ctx));
    assert_int_equal(FSDP_ERR_ARG, fsdp_buffer_peer(ctx, NULL, 0, NULL));
    assert_int_equal(FSDP_OK, fsdp_finalize(ctx));
    assert_int_equal(0, l.n);
}

/* What goes wrong before there is a context, and in a context that is ill-treated at its end. */
static void a_failed_init_tells_the_function(void **state)
{
    static lines  l;
    fsdp_config   config;
    fsdp_context *ctx;

    (void)state;
    open_lines(&l, &config);
    assert_int_equal(FSDP_ERR_ARG, fsdp_init(MPI_COMM_NULL, &config, &ctx));
    assert_true(has(&l, FSDP_LOG_ERROR, -1, "MPI_COMM_NULL"));
    config.views_in_flight = 0;
    assert_int_equal(FSDP_ERR_ARG, fsdp_init(MPI_COMM_SELF, &config, &ctx));
    assert_true(has(&l, FSDP_LOG_ERROR, 0, "views_in_flight is 0"));
}

static void contexts_have_functions_of_their_own(void **state)
{
    static lines  a, b;
    fsdp_config   config_a, config_b;
    fsdp_context *ctx_a, *ctx_b;

    (void)state;
    open_lines(&a, &config_a);
    open_lines(&b, &config_b);
    assert_int_equal(FSDP_OK, fsdp_init(MPI_COMM_SELF, &config_a, &ctx_a));
    assert_int_equal(FSDP_OK, fsdp_init(MPI_COMM_SELF, &config_b, &ctx_b));
    assert_int_equal(FSDP_ERR_ARG, fsdp_buffer_peer(ctx_b, NULL, 0, NULL));
    assert_int_equal(0, a.n);
    assert_int_equal(1, b.n);
    assert_int_equal(FSDP_OK, fsdp_finalize(ctx_b));
    assert_int_equal(FSDP_OK, fsdp_finalize(ctx_a));
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lines_and_errors_go_to_the_function),
        cmocka_unit_test(levels_are_those_of_the_setting),
        cmocka_unit_test(a_failed_init_tells_the_function),
        cmocka_unit_test(contexts_have_functions_of_their_own),
    };

    return fsdp_test_main(argc, argv, tests, NULL, NULL);
}
