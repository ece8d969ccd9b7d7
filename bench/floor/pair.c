#include "bench/floor/pair.h"

#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include "bench/floor/plan.h"

#define PAGE          4096
#define MESSAGE_BYTES ((sizeof(bench_letter) + BENCH_PLAN_INLINE_BYTES + PAGE - 1) / PAGE * PAGE)
#define ALL_BYTES     (BENCH_PLAN_ROOM + 2 * MESSAGE_BYTES)

_Static_assert(sizeof(bench_letter) == 64, "a letter is one cache line");

/* The kernels that the library uses in this process. */
static const fsdpi_kernels *find_kernels(void)
{
    const char          *asked = getenv("FSDP_ISA");
    const fsdpi_kernels *found = fsdpi_kernels_find(asked ? asked : "auto");

    return found ? found : fsdpi_kernels_find("auto");
}

fsdp_status bench_pair_open(bench_pair *pair, const bench_world *world)
{
    *pair = (bench_pair){.rank     = world->rank,
                         .peer     = 1 - world->rank,
                         .kernels  = find_kernels(),
                         .room     = aligned_alloc(PAGE, ALL_BYTES),
                         .requests = {MPI_REQUEST_NULL, MPI_REQUEST_NULL}};
    MPI_Comm_dup(world->comm, &pair->comm);
    BENCH_TRY(bench_agree(world, pair->room != NULL, "no memory for the messages of --floor"));
    memset(pair->room, 0, ALL_BYTES);
    pair->sent     = pair->room + BENCH_PLAN_ROOM;
    pair->received = pair->sent + MESSAGE_BYTES;
    return FSDP_OK;
}

void bench_pair_close(bench_pair *pair)
{
    free(pair->room);
    MPI_Comm_free(&pair->comm);
}

void bench_letter_write(bench_pair *pair, const bench_case *c)
{
    bench_letter *mine = &pair->mine;

    mine->call++;
    mine->bytes       = c->bytes;
    mine->fingerprint = (mine->call * 0x9E3779B97F4A7C15U) ^ ((uint64_t)c->collective << 56) ^ c->count;
    mine->flags       = (uint32_t)c->dtype << 8 | (uint32_t)c->op;
}

fsdp_status bench_letter_compare(const bench_pair *pair)
{
    return memcmp(&pair->mine, &pair->theirs, sizeof pair->mine) == 0 ? FSDP_OK : FSDP_ERR_MISMATCH;
}

/* Until both are complete. */
static void wait_for(MPI_Request requests[2])
{
    int done = 0;

    for (unsigned looks = 0; !done; looks++) {
        MPI_Testall(2, requests, &done, MPI_STATUSES_IGNORE);
        if (!done && looks > BENCH_SPINS) {
            (void)sched_yield();
        }
    }
}

/* wait_for() completes them, which the checker does not take for a wait. */
/* NOLINTBEGIN(clang-analyzer-optin.mpi.MPI-Checker) */

void bench_letter_post(bench_pair *pair)
{
    MPI_Irecv(&pair->theirs, (int)sizeof pair->theirs, MPI_BYTE, pair->peer, BENCH_TAG_LETTER, pair->comm,
              &pair->requests[0]);
    MPI_Isend(&pair->mine, (int)sizeof pair->mine, MPI_BYTE, pair->peer, BENCH_TAG_LETTER, pair->comm,
              &pair->requests[1]);
}

const char *bench_letter_exchange(bench_pair *pair, const void *data, size_t bytes)
{
    const int length = (int)(sizeof pair->mine + bytes);

    memcpy(pair->sent, &pair->mine, sizeof pair->mine);
    memcpy(pair->sent + sizeof pair->mine, data, bytes);
    MPI_Irecv(pair->received, length, MPI_BYTE, pair->peer, BENCH_TAG_INLINE, pair->comm, &pair->requests[0]);
    MPI_Isend(pair->sent, length, MPI_BYTE, pair->peer, BENCH_TAG_INLINE, pair->comm, &pair->requests[1]);
    wait_for(pair->requests);
    memcpy(&pair->theirs, pair->received, sizeof pair->theirs);
    return pair->received + sizeof pair->theirs;
}

/* NOLINTEND(clang-analyzer-optin.mpi.MPI-Checker) */

void bench_letter_end(bench_pair *pair)
{
    wait_for(pair->requests);
}
