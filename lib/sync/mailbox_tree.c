/*
 * The mailbox in a tree: what has been heard goes up, and what all are told down. As without one, each function is called
 * until it says yes, for one number or milestone at a time.
 */
#include "lib/sync/mailbox.h"

static fsdpi_desk *own_desk(const fsdpi_mailbox *box)
{
    return box->desks[box->position];
}

static bool is_leader(const fsdpi_mailbox *box)
{
    return box->position == 0;
}

/* What this rank looks at of the i-th that it hears: a letter, or a sum if that one hears others itself. */
static const fsdpi_letter *letter_below(const fsdpi_mailbox *box, int i, uint64_t number)
{
    const int p = box->tree.below[i];

    return i < box->tree.n_leaf ? fsdpi_letter_of(box, p, number) : &box->desks[p]->sums[number & 1];
}

/* ---- letters --------------------------------------------------------------------------------------------------------- */

/* A place counts where all have the same one: see FSDPI_FLAG_ONE_PLACE. */
static void copy_letter(fsdpi_letter *sum, const fsdpi_letter *letter)
{
    const fsdpi_opinion opinion = fsdpi_read_opinion(letter);

    fsdpi_write_opinion(sum, &opinion);
    sum->at.out        = letter->at.out;
    sum->at.out_buffer = letter->at.out_buffer;
}

static void join_letter(fsdpi_letter *sum, const fsdpi_letter *letter)
{
    const fsdpi_opinion other = fsdpi_read_opinion(letter);
    fsdpi_opinion       all   = fsdpi_read_opinion(sum);

    fsdpi_join(&all, &other);
    if (sum->at.out != letter->at.out || sum->at.out_buffer != letter->at.out_buffer) {
        all.flags &= ~(uint32_t)FSDPI_FLAG_ONE_PLACE;
    }
    fsdpi_write_opinion(sum, &all);
}

bool fsdpi_tree_heard(fsdpi_mailbox *box, uint64_t number)
{
    fsdpi_desk   *desk = own_desk(box);
    fsdpi_letter *sum  = &desk->sums[number & 1];

    if (box->tree.n == 0 || atomic_load_explicit(&sum->number, memory_order_relaxed) == number) {
        return true;
    }
    if (box->seen == 0) {
        copy_letter(sum, fsdpi_letter_of(box, box->position, number));
    }
    for (; box->seen < box->tree.n; box->seen++) {
        const fsdpi_letter *letter = letter_below(box, box->seen, number);

        if (!fsdpi_word_reached(box, &box->desks[box->tree.below[box->seen]]->bell, &letter->number, number)) {
            return false;
        }
        join_letter(sum, letter);
    }
    atomic_store_explicit(&sum->number, number, memory_order_release);
    fsdpi_bell_ring(&desk->bell);
    return true;
}

bool fsdpi_tree_arrived(fsdpi_mailbox *box, uint64_t number)
{
    if (!fsdpi_tree_heard(box, number)) {
        return false;
    }
    if (!is_leader(box)) {
        return fsdpi_mailbox_told(box, number);
    }
    const fsdpi_opinion all = fsdpi_mailbox_verdict(box, number);
    fsdpi_mailbox_tell(box, number, &all);
    return true;
}

fsdpi_opinion fsdpi_mailbox_verdict(const fsdpi_mailbox *box, uint64_t number)
{
    return fsdpi_read_opinion(is_leader(box) ? &own_desk(box)->sums[number & 1]
                                             : &box->desks[box->tree.above]->board[number & 1]);
}

/* ---- milestones ------------------------------------------------------------------------------------------------------ */

/* Whether this rank, which has reached a milestone, and all below have; then it has been passed on. */
static bool passed_on(fsdpi_mailbox *box, uint64_t milestone)
{
    fsdpi_desk *desk = own_desk(box);

    if (box->tree.n == 0 || atomic_load_explicit(&desk->sum, memory_order_relaxed) >= milestone) {
        return true;
    }
    for (; box->seen < box->tree.n; box->seen++) {
        fsdpi_desk *below = box->desks[box->tree.below[box->seen]];

        if (!fsdpi_word_reached(box, &below->bell, box->seen < box->tree.n_leaf ? &below->milestone : &below->sum,
                                milestone)) {
            return false;
        }
    }
    atomic_store_explicit(&desk->sum, milestone, memory_order_release);
    fsdpi_bell_ring(&desk->bell);
    return true;
}

bool fsdpi_tree_reached(fsdpi_mailbox *box, uint64_t milestone)
{
    fsdpi_desk *desk = own_desk(box);

    if (!passed_on(box, milestone)) {
        return false;
    }
    if (!is_leader(box)) {
        fsdpi_desk *teller = box->desks[box->tree.above];

        if (!fsdpi_word_reached(box, &teller->told, &teller->all, milestone)) {
            return false;
        }
    }
    if (box->tree.n > 0) {
        atomic_store_explicit(&desk->all, milestone, memory_order_release);
        fsdpi_bell_ring(&desk->told);
    }
    return true;
}

/* ---- the tree -------------------------------------------------------------------------------------------------------- */

/* From what all ranks have laid out on their desks: the same on all of them. */
static void grow(const fsdpi_mailbox *first, uint16_t *above)
{
    fsdpi_place places[FSDPI_MOST_ON_NODE];

    for (int p = 0; p < first->nodes->size; p++) {
        places[p] = first->desks[p]->place;
    }
    fsdpi_tree_grow(places, first->nodes->size, first->core->config.node_group, above);
}

void fsdpi_mailbox_grow(fsdpi_mailbox *box, const fsdpi_mailbox *first)
{
    uint16_t above[FSDPI_MOST_ON_NODE];

    if (!fsdpi_tree_is_needed(box->nodes->size, box->core->config.node_group)) {
        return;
    }
    grow(first, above);
    fsdpi_tree_cut(above, box->nodes->size, box->position, &box->tree);
    box->direct = 0;
    if (box->tree.n > 0) {
        box->bell = &box->nobody;
    }
}
