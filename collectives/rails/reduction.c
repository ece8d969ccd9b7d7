#include "collectives/rails/reduction.h"

#include "collectives/rails/chunks.h"
#include "collectives/rails/ops.h"
#include "collectives/rails/places.h"
#include "collectives/rails/route.h"
#include "collectives/rails/schedule.h"
#include "collectives/rails/work.h"
#include "collectives/reach/mover.h"
#include "lib/context/context.h"

/*
 * One step of the reduction of a chunk: of nodes one after the other, the first of which follow on those already reduced.
 * Where a chunk of every node has a place, one step takes all.
 */
typedef struct fold_step {
    fsdpi_slice    c;
    unsigned char *to;         /* where the chunk belongs */
    int            first, end; /* nodes */
    size_t         come;       /* chunks from other nodes among them */
    bool           is_last;
} fold_step;

static unsigned char *result_of(const fsdp_request *request)
{
    const unsigned route = request->ctx->rails.route;

    if ((route & FSDPI_COLLECTS) != 0) {
        return fsdpi_rails_collected(request);
    }
    return (route & FSDPI_WHOLE) != 0 ? request->call.out : fsdpi_own_result(request);
}

/* In place the other node has to have what is about to be written over. */
static bool is_still_sent(const fsdp_request *request)
{
    const fsdpi_call  *call  = &request->call;
    const fsdpi_rails *rails = &request->ctx->rails;

    return (rails->route & FSDPI_WHOLE) != 0 && rails->streams[FSDPI_PARTIALS_OUT].released <= rails->reducing &&
           fsdpi_overlap(call->in, call->in_bytes, call->out, call->out_bytes);
}

/* The next step, or false where not all it takes has come, or will have when the work before is done. */
static bool next_step(const fsdp_request *request, fold_step *next)
{
    const fsdpi_rails *rails = &request->ctx->rails;
    const fsdpi_nodes *nodes = &request->ctx->nodes;
    const int          first = rails->folding;
    const size_t       left  = (size_t)(nodes->count - first) - (first <= nodes->mine);
    const size_t       come  = left < rails->fold_most ? left : rails->fold_most;

    if (rails->reducing == rails->chunks || rails->folds_begun - rails->folds_ended == FSDPI_RAILS_FOLDS ||
        rails->streams[FSDPI_PARTIALS_IN].begun - rails->taken < come || is_still_sent(request)) {
        return false;
    }
    const fsdpi_slice mine    = fsdpi_rails_part(request, request->ctx->rank);
    const int         behind  = first + (int)come;
    const bool        has_own = first <= nodes->mine && nodes->mine <= behind;

    next->c       = fsdpi_rails_chunk_of(request, mine.begin, mine.count, rails->reducing);
    next->to      = result_of(request) + (next->c.begin - mine.begin) * request->call.width;
    next->first   = first;
    next->end     = behind + has_own;
    next->come    = come;
    next->is_last = next->end == nodes->count;
    return true;
}

/* The partial results of the nodes of a step; this node's own is computed before. */
static fsdp_status find_operands(fsdp_request *request, const fold_step *s, const void **operands)
{
    const fsdp_context *ctx = request->ctx;
    const int           own = ctx->nodes.mine;
    size_t              n   = ctx->rails.taken;

    if (s->first <= own && own < s->end) {
        FSDP_TRY(fsdpi_rails_compute_partial(request, s->c, fsdpi_rails_own_place(request)));
    }
    for (int node = s->first; node < s->end; node++) {
        operands[node - s->first] = node == own ? fsdpi_rails_partial(request, s->c, fsdpi_rails_own_place(request))
                                                : (const void *)fsdpi_rails_place(request, FSDPI_PARTIALS_IN, n++);
    }
    return FSDP_OK;
}

/* Until the last step a mean is a sum. */
static fsdp_redop op_of(const fsdp_request *request, bool is_last)
{
    return request->call.op == FSDP_AVG && !is_last ? FSDP_SUM : request->call.op;
}

/* The sum so far is of the elements' own type. */
static fsdp_status reduce_step(fsdp_request *request, const fold_step *s)
{
    fsdp_context        *ctx  = request->ctx;
    unsigned char *const sum  = fsdpi_rails_sum_place(request);
    const size_t         more = s->first > 0;

    FSDP_TRY(find_operands(request, s, ctx->operands + more));
    if (more > 0) {
        ctx->operands[0] = sum;
    }
    const fsdpi_mover *mover = fsdpi_mover_of(request);
    const bool         stays = s->is_last && (ctx->rails.route & FSDPI_MOVES) == 0; /* nobody is sent it */

    (stays ? mover->place_reduced : mover->reduce)(request, s->is_last ? s->to : sum,
                                                   more + (size_t)(s->end - s->first), s->c.count,
                                                   op_of(request, s->is_last), (size_t)ctx->size);
    return FSDP_OK;
}

/* The sum so far is kept in f32, since elements are rounded once, at the end. */
static fsdp_status reduce_wide_step(fsdp_request *request, const fold_step *s)
{
    const fsdpi_mover   *mover = fsdpi_mover_of(request);
    fsdp_context        *ctx   = request->ctx;
    unsigned char *const sum = fsdpi_rails_sum_place(request), *const wide = fsdpi_rails_wide_place(request);
    const void *both[] = {sum, wide};

    FSDP_TRY(find_operands(request, s, ctx->operands));
    for (int node = s->first; node < s->end; node++) {
        mover->widen(request, node == 0 ? sum : wide, ctx->operands[node - s->first], s->c.count);
        if (node > 0) {
            mover->reduce_wide(request, sum, both, 2, s->c.count, op_of(request, node + 1 == ctx->nodes.count),
                               (size_t)ctx->size);
        }
    }
    if (s->is_last) {
        mover->narrow(request, s->to, sum, s->c.count);
    }
    return FSDP_OK;
}

static fsdp_status begin_fold(fsdp_request *request, bool *moved)
{
    const fsdpi_rails_ops *ops   = fsdpi_rails_ops_of(request);
    fsdpi_rails           *rails = &request->ctx->rails;
    fold_step              s;

    if (!next_step(request, &s)) {
        return FSDP_OK;
    }
    const bool is_whole = s.first == 0 && s.is_last;
    ops->turn(request, FSDPI_COMING);
    FSDP_TRY(!is_whole && fsdpi_rails_is_wide(request) ? reduce_wide_step(request, &s) : reduce_step(request, &s));
    (void)ops->mark(request, fsdpi_rails_fold_number(rails, rails->folds_begun));
    rails->folds[rails->folds_begun % FSDPI_RAILS_FOLDS] = (fsdpi_fold){.chunks = s.come, .is_last = s.is_last};
    rails->folds_begun++;
    rails->taken += s.come;
    rails->folding = s.is_last ? 0 : s.end;
    rails->reducing += s.is_last;
    *moved = true;
    return FSDP_OK;
}

static void end_folds(fsdp_request *request, bool *moved)
{
    const fsdpi_rails_ops *ops     = fsdpi_rails_ops_of(request);
    fsdp_context          *ctx     = request->ctx;
    fsdpi_rails           *rails   = &ctx->rails;
    const size_t           reduced = rails->reduced;

    while (rails->folds_ended < rails->folds_begun &&
           ops->is_past(request, fsdpi_rails_fold_number(rails, rails->folds_ended))) {
        const fsdpi_fold *fold = &rails->folds[rails->folds_ended % FSDPI_RAILS_FOLDS];

        rails->folds_ended++;
        rails->reduced += fold->is_last;
        rails->streams[FSDPI_PARTIALS_IN].released += fold->chunks;
        *moved = true;
    }
    if (rails->reduced > reduced && (rails->route & FSDPI_GATHERS) != 0 && ctx->nodes.size > 1) {
        fsdpi_mailbox_set_landed(&request->lane->box, FSDPI_LANDED_FINAL, rails->reduced);
    }
}

fsdp_status fsdpi_rails_reduce(fsdp_request *request, bool *moved)
{
    const fsdpi_rails *rails = &request->ctx->rails;

    if ((rails->route & FSDPI_REDUCES) == 0) {
        return FSDP_OK;
    }
    if (*moved || !rails->is_still) {
        FSDP_TRY(begin_fold(request, moved));
    }
    end_folds(request, moved);
    return FSDP_OK;
}
