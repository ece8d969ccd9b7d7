/*
 * A job in which something happens to one rank, for the tests of fsdp-why and fsdp-top:
 *
 *     faulty FAULT RANK
 *
 * Ranks train a unit called h.4; after a few steps RANK is stopped by SIGSTOP (stop), computes for ever (loop), ends (exit), is
 * killed (kill), dies of a signal (segv), or makes another call (mismatch); is later than the others in every step (slow); or
 * nothing happens (none). The others wait for it until the test or FSDP_TIMEOUT_S ends them. The last line that a rank prints is
 * what its step returned.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <mpi.h>

#include <fsdp/fsdp.h>

enum { STEPS_BEFORE = 3 };

/* As if something were computed, without an end. */
static void compute_for_ever(void)
{
    for (volatile unsigned long n = 0;; n++) {
    }
}

static void nap(void)
{
    const struct timespec t = {.tv_nsec = 20000000};

    (void)nanosleep(&t, NULL);
}

static void happen(const char *fault, fsdp_context *ctx)
{
    if (strcmp(fault, "stop") == 0) {
        (void)raise(SIGSTOP);
    } else if (strcmp(fault, "loop") == 0) {
        compute_for_ever();
    } else if (strcmp(fault, "exit") == 0) {
        _exit(0);
    } else if (strcmp(fault, "kill") == 0) {
        (void)raise(SIGKILL);
    } else if (strcmp(fault, "segv") == 0) {
        (void)raise(SIGSEGV);
    } else if (strcmp(fault, "mismatch") == 0) {
        (void)fsdp_barrier(ctx);
    } else if (strcmp(fault, "slow") == 0) {
        nap();
    }
}

static fsdp_status step(fsdp_unit *unit)
{
    fsdp_status status = fsdp_unit_begin_forward(unit);

    status = status == FSDP_OK ? fsdp_unit_end_forward(unit) : status;
    status = status == FSDP_OK ? fsdp_unit_begin_backward(unit) : status;
    return status == FSDP_OK ? fsdp_unit_end_backward(unit) : status;
}

/* Has something to wait for in each step, so that none is ahead of the others. */
static fsdp_status train(fsdp_context *ctx, fsdp_model *model, fsdp_unit *unit, const char *fault, int victim)
{
    fsdp_status status  = FSDP_OK;
    double      ahead   = 0;
    const int   is_slow = strcmp(fault, "slow") == 0;

    for (int n = 0; status == FSDP_OK; n++) {
        if (fsdp_rank(ctx) == victim && (n == STEPS_BEFORE || is_slow)) {
            happen(fault, ctx);
        }
        status = step(unit);
        status = status == FSDP_OK ? fsdp_model_zero_grad(model) : status;
        status = status == FSDP_OK ? fsdp_allreduce(ctx, FSDP_IN_PLACE, &ahead, 1, FSDP_F64, FSDP_MAX) : status;
    }
    return status;
}

int main(int argc, char **argv)
{
    fsdp_model_options options = FSDP_MODEL_OPTIONS_DEFAULT;
    const fsdp_tensor  tensor  = {.name = "w", .n_dims = 1, .shape = {1 << 16}};
    fsdp_context      *ctx;
    fsdp_model        *model;
    fsdp_unit         *unit;
    int                level;

    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &level);
    if (argc != 3) {
        (void)fprintf(stderr, "usage: faulty FAULT RANK\n");
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    if (fsdp_init(MPI_COMM_WORLD, NULL, &ctx) != FSDP_OK || fsdp_model_create(ctx, &options, &model) != FSDP_OK ||
        fsdp_unit_add(model, "h.4", &tensor, 1, &unit) != FSDP_OK || fsdp_model_commit(model) != FSDP_OK) {
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    const fsdp_status status = train(ctx, model, unit, argv[1], atoi(argv[2]));
    (void)printf("ended: %s\n", fsdp_status_name(status));
    (void)fflush(stdout);
    _exit(3); /* others may not come to MPI_Finalize() */
}
