#include "collectives/select/select_algorithm.h"

#include "collectives/blocks/inline.h"
#include "collectives/reach/mover.h"
#include "collectives/reach/reach.h"
#include "collectives/select/able.h"
#include "lib/context/context.h"
#include "lib/progress/agreement.h"

static size_t whole_bytes(const fsdp_request *request)
{
    return request->call.whole * request->call.width;
}

static const fsdpi_algorithm *const *menu_of(const fsdp_request *request)
{
    const fsdpi_selection *selection = fsdpi_selection_of(request);

    return request->call.on_device ? selection->on_device : selection->menu;
}

/* Those on the menu of the collective, of those that could serve the call. */
static unsigned able(const fsdp_request *request)
{
    const fsdpi_selection *selection = fsdpi_selection_of(request);
    unsigned               all       = fsdpi_able(request);

    if (request->call.collective->id == FSDPI_ALLTOALL && request->ctx->nodes.count > 1) {
        all |= 1U << FSDP_ALGO_RAILS; /* from rank to rank, whose memory nobody else reads */
    }
    if (selection->is_separate && (request->flags & FSDPI_FLAG_SEPARATE) == 0) {
        all &= ~(1U << FSDP_ALGO_DIRECT | 1U << FSDP_ALGO_CMA);
    }
    for (int a = 0; a < FSDP_N_ALGORITHMS; a++) {
        if (menu_of(request)[a] == NULL) {
            all &= ~(1U << a);
        }
    }
    return all;
}

static fsdpi_origin origin_of(const fsdp_request *request)
{
    return (request->flags & FSDPI_FLAG_AGAIN) != 0       ? FSDPI_FROM_CACHES
           : (request->flags & FSDPI_FLAG_SYMMETRIC) != 0 ? FSDPI_FROM_SYMMETRIC
                                                          : FSDPI_FROM_USER;
}

/* `may_inline`: inline is one of those that could serve. One thread at a time carries operations out. */
static fsdp_algorithm find(const fsdp_request *request, bool may_inline)
{
    const fsdpi_collective_id id    = (fsdpi_collective_id)request->call.collective->id;
    const size_t              bytes = whole_bytes(request);
    fsdpi_choice             *last  = &request->ctx->table.last[id][may_inline];

    if (!last->known || last->bytes != bytes || last->flags != request->flags) {
        const unsigned       all   = able(request) | (may_inline ? 1U << FSDP_ALGO_INLINE : 0U);
        const fsdp_algorithm found = fsdpi_table_find(&request->ctx->table, id, origin_of(request), bytes, all);

        *last = (fsdpi_choice){.bytes = bytes, .flags = request->flags, .known = true, .algorithm = (uint8_t)found};
    }
    return (fsdp_algorithm)last->algorithm;
}

/*
 * What rides on the agreement holds up the short lane. Between nodes that is for as long as the link needs; where it is longer
 * than that, only for a caller who waits for nothing else.
 */
static bool is_brief(const fsdp_request *request)
{
    static const double LONGEST = 50e-6, ASSUMED_RATE = 1e9;
    const fsdp_context *ctx  = request->ctx;
    const double        rate = ctx->link.rate > 0 ? ctx->link.rate : ASSUMED_RATE;

    return request->is_blocking || ctx->nodes.count == 1 || (double)whole_bytes(request) <= rate * LONGEST;
}

/*
 * Whether what rides on the agreement is an allreduce's first half. All ranks have to know that alike, whatever their memory and
 * whoever waits: what is sent differs.
 */
static bool in_halves(const fsdp_request *request)
{
    const fsdpi_selection *selection = fsdpi_selection_of(request);

    return selection->menu[FSDP_ALGO_HALVES] != NULL && request->lane->exchange.in_pairs &&
           whole_bytes(request) > request->ctx->table.inline_up_to[selection->base.collective.id] &&
           fsdpi_fits_inline(request, FSDPI_SCATTER) &&
           fsdpi_table_in_halves(&request->ctx->table, whole_bytes(request));
}

/* The pattern of what rides on the agreement. */
static fsdpi_pattern offered(const fsdp_request *request)
{
    return request->in_halves ? FSDPI_SCATTER : fsdpi_pattern_of(request);
}

/* Outputs that are one for the node are written by several ranks at once, which therefore have to leave together. */
static bool may_ride(const fsdp_request *request, bool fits)
{
    return fits && (request->flags & FSDPI_FLAG_SHARED) == 0 &&
           (request->in_halves || find(request, true) == FSDP_ALGO_INLINE);
}

/* One output for the node only counts as such where all its ranks give the same place of it. */
static void check_shared(fsdp_request *request)
{
    const fsdpi_letter *first = fsdpi_letter_from(request, 0);

    if (fsdpi_mailbox_has_tree(&request->lane->box)) { /* which has compared them */
        request->flags &= (request->flags & FSDPI_FLAG_ONE_PLACE) != 0 ? ~0U : ~(unsigned)FSDPI_FLAG_SHARED;
        return;
    }
    for (int p = 1; p < request->ctx->nodes.size && (request->flags & FSDPI_FLAG_SHARED) != 0; p++) {
        const fsdpi_letter *letter = fsdpi_letter_from(request, p);
        if (letter->at.out_buffer != first->at.out_buffer || letter->at.out != first->at.out) {
            request->flags &= ~(unsigned)FSDPI_FLAG_SHARED;
        }
    }
}

/* Whether peers would read this rank's memory, as it looks from here; what holds on all ranks can only be less. */
static bool would_be_read(const fsdp_request *request)
{
    const fsdp_context *ctx = request->ctx;

    return (request->flags & FSDPI_FLAG_SYMMETRIC) == 0 && ctx->nodes.size > 1 && ctx->peers.readable &&
           find(request, false) != FSDP_ALGO_STAGED;
}

/* Between two nodes, where what caches hold decides how it goes. */
static bool is_allreduce_of_two(const fsdp_request *request)
{
    return request->ctx->size == 2 && request->ctx->nodes.count == 2 && request->call.collective->id == FSDPI_ALLREDUCE;
}

/* Whether caches may still hold the input. */
static unsigned is_again(const fsdp_request *request)
{
    return is_allreduce_of_two(request) && fsdpi_is_recent(&request->ctx->rails.summed, request->call.in)
               ? FSDPI_FLAG_AGAIN
               : 0;
}

void fsdpi_select_remember(fsdp_request *request)
{
    if (is_allreduce_of_two(request)) {
        request->ctx->rails.summed = fsdpi_read_now(request->call.in);
    }
}

/*
 * Whether to offer the data with the letter depends on this rank alone, and so its flags may differ from its peers'. If
 * then not all offer it, the places of some are not known, and the data goes through blocks. So it does where a rank keeps
 * its places to itself, since peers cannot read them.
 */
unsigned fsdpi_select_offer(fsdp_request *request, fsdpi_letter *letter)
{
    const fsdpi_selection *selection = fsdpi_selection_of(request);
    const size_t           bytes     = whole_bytes(request);

    if (request->call.on_device) {
        return fsdpi_offer_places(request, letter);
    }
    fsdpi_note_memory(request);
    request->in_halves = in_halves(request);
    const bool fits    = is_brief(request) && fsdpi_fits_inline(request, offered(request));
    if (fits && request->ctx->buffers.n_per_node == 0 &&
        bytes <= request->ctx->table.inline_up_to[selection->base.collective.id]) {
        return fsdpi_publish_inline(request, selection->base.pattern, letter);
    }
    request->flags = fsdpi_offer_places(request, letter) | is_again(request);
    if (may_ride(request, fits)) {
        fsdpi_select_remember(request);
        return fsdpi_publish_inline(request, offered(request), letter);
    }
    if (would_be_read(request) && !fsdpi_places_are_open(request, letter)) {
        request->flags &= ~(unsigned)FSDPI_FLAG_PLACES;
    }
    return request->flags;
}

/* Then it is not carried out in halves. */
bool fsdpi_select_is_brief(const fsdp_request *request)
{
    const size_t bytes = whole_bytes(request);

    return bytes <= request->ctx->table.inline_up_to[request->call.collective->id] && !request->call.on_device &&
           request->ctx->buffers.n_per_node == 0 &&
           (bytes <= request->lane->exchange.together || fsdpi_fits_inline(request, fsdpi_pattern_of(request)));
}

size_t fsdpi_select_record(fsdp_request *request, unsigned char *payload)
{
    return fsdpi_record_inline(request, offered(request), payload);
}

fsdpi_portion fsdpi_select_portion(fsdp_request *request, int node)
{
    return fsdpi_portion_inline(request, offered(request), node);
}

size_t fsdpi_select_expected(fsdp_request *request, int node)
{
    return fsdpi_pairs_may_place(&request->lane->exchange, whole_bytes(request))
               ? fsdpi_expected_inline(request, offered(request), node)
               : 0;
}

void *fsdpi_select_place(fsdp_request *request, int node)
{
    return fsdpi_place_inline(request, offered(request), node);
}

const fsdpi_algorithm *fsdpi_select_choose(fsdp_request *request)
{
    if ((request->flags & FSDPI_FLAG_OFFERED) != 0) {
        return request->in_halves ? menu_of(request)[FSDP_ALGO_HALVES] : &fsdpi_inline;
    }
    check_shared(request);
    return menu_of(request)[find(request, false)];
}
