#include "lib/progress/inquest.h"

#include "lib/base/clock.h"
#include "lib/base/error.h"
#include "lib/base/log.h"
#include "lib/progress/awaited.h"
#include "lib/progress/inquest_words.h"
#include "lib/progress/queue_inside.h"

/* SECONDS. Between two looks no more than SECONDS_OF_A_LOOK count: this rank may have been stopped too. */
static const double LISTENS_AFTER      = 2e-3; /* in vain */
static const double GIVES_SIGN_EVERY   = 0.25; /* while it moves, or another context is waited for */
static const double STILL_MOVES        = 0.5;  /* after the last move, in answers */
static const double LONGEST_SILENCE    = 1.5;  /* of a rank that has been asked */
static const double LONGEST_INQUEST    = 2.0;
static const double SHORTEST_INQUEST   = 0.5; /* what has just come is taken meanwhile */
static const double SECONDS_OF_A_LOOK  = 0.05;
static const double LEAVE_BEHIND_AFTER = 1.0; /* an operation before the one that was given up */
static const double SETTLES_FOR        = 0.05;

static const fsdpi_core *core_of(const fsdpi_queue *queue)
{
    return queue->engine.core;
}

/* Where the ranks of a node tell each other that they give up: one of the two will do. */
static fsdpi_mailbox *box_of(const fsdpi_queue *queue)
{
    return &queue->engine.lanes[FSDPI_LANE_SHORT].box;
}

/* Whom this rank waits for, in both lanes. */
static void list_awaited(const fsdpi_queue *queue, fsdpi_rank_list *list)
{
    for (int lane = FSDPI_LANE_SHORT; lane <= FSDPI_LANE_LONG; lane++) {
        const fsdp_request *head = fsdpi_head(queue, lane);
        if (head != NULL) {
            fsdpi_awaited(head, list);
        }
    }
}

/* Else nobody ever asks. */
static bool is_of_use(const fsdpi_queue *queue)
{
    return core_of(queue)->config.timeout_s > 0 || core_of(queue)->config.stall_s > 0;
}

/* The recorder stamps an operation's end with it too, and its clock is the cheapest. */
static uint64_t now_of(const fsdpi_queue *queue)
{
    return fsdpi_ticks(queue->engine.recorder->clock);
}

void fsdpi_inquest_open(fsdpi_queue *queue)
{
    queue->inquest.notes.messages = &queue->engine.lanes[FSDPI_LANE_LONG].messages;
    queue->inquest.ended          = now_of(queue);
}

/* Where MPI has not ended; answers that are late are taken out of its way. */
void fsdpi_inquest_close(fsdpi_queue *queue)
{
    const fsdpi_core     *core     = core_of(queue);
    const fsdpi_messages *messages = queue->inquest.notes.messages;
    fsdpi_note            note;
    int                   from;

    if (messages == NULL || messages->core == NULL) { /* not opened */
        return;
    }
    if (core->broken == FSDP_OK && core->comm != MPI_COMM_NULL) {
        while (fsdpi_note_receive(&queue->inquest.notes, &note, &from)) {
        }
        fsdpi_notes_settle(&queue->inquest.notes, SETTLES_FOR);
    }
    fsdpi_notes_close(&queue->inquest.notes);
}

/* ---- asking ------------------------------------------------------------------------------------------------------ */

static fsdpi_asked *find(fsdpi_inquest *inquest, int rank)
{
    for (int i = 0; i < inquest->n; i++) {
        if (inquest->asked[i].rank == rank) {
            return &inquest->asked[i];
        }
    }
    return NULL;
}

static void ask(fsdpi_queue *queue, const fsdpi_rank_list *list)
{
    fsdpi_inquest   *inquest  = &queue->inquest;
    const fsdpi_note question = {
        .kind = FSDPI_NOTE_QUESTION, .id = inquest->id, .sequence = fsdpi_oldest(queue)->sequence};

    for (int i = 0; i < list->n && inquest->n < FSDPI_RANKS_ASKED; i++) {
        const int    rank  = list->ranks[i];
        fsdpi_asked *known = find(inquest, rank);
        if (known != NULL) {
            known->aside = false;
        } else if (rank != core_of(queue)->rank) {
            inquest->asked[inquest->n++] = (fsdpi_asked){.rank = rank};
            inquest->quiet               = 0;
            fsdpi_note_send(&inquest->notes, rank, &question);
        }
    }
}

static void begin(fsdpi_inquest *inquest)
{
    inquest->begun   = true;
    inquest->looked  = fsdpi_seconds();
    inquest->elapsed = inquest->quiet = 0;
    inquest->n                        = 0;
    inquest->id++;
}

static void count_time(fsdpi_inquest *inquest)
{
    const double now = fsdpi_seconds(), since = now - inquest->looked;
    const double counted = since < SECONDS_OF_A_LOOK ? since : SECONDS_OF_A_LOOK;

    inquest->looked = now;
    inquest->elapsed += counted;
    inquest->quiet += counted;
}

/* ---- listening and answering --------------------------------------------------------------------------------------- */

static void answer(fsdpi_queue *queue, const fsdpi_note *question, int from, bool moves)
{
    const fsdp_request *head = fsdpi_oldest(queue);
    fsdpi_note          note = {.kind = FSDPI_NOTE_ANSWER, .id = question->id, .sequence = head->sequence};

    note.moves = moves || fsdpi_state_of(head) == FSDPI_REQUEST_DOUBTED;
    if (!moves) {
        list_awaited(queue, &note.ranks);
    }
    fsdpi_note_send(&queue->inquest.notes, from, &note);
}

static void hear_answer(fsdpi_queue *queue, const fsdpi_note *note, int from)
{
    fsdpi_asked *asked = queue->inquest.begun && note->id == queue->inquest.id ? find(&queue->inquest, from) : NULL;

    if (asked != NULL) {
        asked->answered = true;
        asked->moves    = note->moves != 0;
        asked->stuck    = note->moves == 0 && note->ranks.n == 0;
        ask(queue, &note->ranks);
    }
}

static void hear_of_end(fsdpi_inquest *inquest, const fsdpi_notice *notice)
{
    if (!inquest->known) {
        inquest->known  = true;
        inquest->notice = *notice;
    }
}

/* `moves`: the head has got on of late. */
static void listen(fsdpi_queue *queue, bool moves)
{
    enum { AT_A_TIME = 64 };
    fsdpi_inquest *inquest = &queue->inquest;
    fsdpi_note     note;
    int            from;

    inquest->listened = fsdpi_coarse_seconds();
    for (int i = 0; i < AT_A_TIME && fsdpi_note_receive(&inquest->notes, &note, &from); i++) {
        if (note.kind == FSDPI_NOTE_QUESTION) {
            answer(queue, &note, from, moves);
        } else if (note.kind == FSDPI_NOTE_ANSWER) {
            hear_answer(queue, &note, from);
        } else {
            hear_of_end(inquest,
                        &(fsdpi_notice){.sequence = note.sequence, .stuck = note.stuck, .missing = note.ranks});
        }
    }
    fsdpi_notes_settle(&inquest->notes, 0);
}

void fsdpi_inquest_give_sign(fsdpi_queue *queue, bool moves)
{
    if (fsdpi_oldest(queue) != NULL && is_of_use(queue) &&
        fsdpi_coarse_seconds() - queue->inquest.listened > GIVES_SIGN_EVERY) {
        listen(queue, moves);
    }
}

/* ---- giving up --------------------------------------------------------------------------------------------------- */

static bool is_missing_itself(const fsdpi_queue *queue)
{
    return fsdpi_rank_list_has(&queue->inquest.notice.missing, core_of(queue)->rank);
}

/* Those on this node have a notice. */
static void tell_neighbours(fsdpi_queue *queue)
{
    const fsdpi_nodes  *nodes  = queue->engine.nodes;
    const fsdpi_notice *notice = &queue->inquest.notice;
    fsdpi_note          note   = {.kind = FSDPI_NOTE_GIVEN_UP, .sequence = notice->sequence};
    fsdpi_rank_list     list   = {0};

    note.stuck = notice->stuck;
    note.ranks = notice->missing;
    if (nodes->count == 1) {
        return;
    }
    fsdpi_neighbours(core_of(queue), &list);
    for (int i = 0; i < list.n; i++) {
        if (!fsdpi_is_on_node(nodes, list.ranks[i])) {
            fsdpi_note_send(&queue->inquest.notes, list.ranks[i], &note);
        }
    }
    fsdpi_notes_settle(&queue->inquest.notes, SETTLES_FOR);
}

/* `printed`: by another rank of this node. */
static void give_up(fsdpi_queue *queue, bool printed)
{
    tell_neighbours(queue);
    fsdpi_notes_close(&queue->inquest.notes);
    fsdpi_give_up(queue, printed);
}

/* What others have said holds, whatever may have come meanwhile. */
static void join_others(fsdpi_queue *queue, bool on_node)
{
    if (!on_node) {
        fsdpi_mailbox_doubt(box_of(queue), true);
        fsdpi_mailbox_leave_notice(box_of(queue), &queue->inquest.notice);
    }
    give_up(queue, on_node && !is_missing_itself(queue));
}

static bool all_answer(const fsdpi_inquest *inquest)
{
    for (int i = 0; i < inquest->n; i++) {
        if (!inquest->asked[i].answered && !inquest->asked[i].aside) {
            return false;
        }
    }
    return true;
}

/* Those who are the end of a chain: they do not answer; or, where all do, they wait for nobody. */
static fsdpi_notice conclusion(const fsdpi_queue *queue)
{
    const fsdpi_inquest *inquest = &queue->inquest;
    fsdpi_notice         notice  = {.sequence = fsdpi_oldest(queue)->sequence, .stuck = all_answer(inquest)};

    for (int i = 0; i < inquest->n; i++) {
        const fsdpi_asked *asked = &inquest->asked[i];
        if (!asked->aside && (notice.stuck != 0 ? asked->stuck : !asked->answered)) {
            fsdpi_rank_list_add(&notice.missing, asked->rank);
        }
    }
    if (inquest->n == 0 || (inquest->n == 1 && inquest->asked[0].aside)) {
        fsdpi_rank_list_add(&notice.missing, core_of(queue)->rank);
    }
    return notice;
}

/* Unless what is waited for has come at the last moment: see lib/sync/mailbox.h. */
static bool try_to_give_up(fsdpi_queue *queue)
{
    fsdpi_mailbox *box   = box_of(queue);
    const uint64_t moves = atomic_load(&queue->moves);

    fsdpi_mailbox_doubt(box, true);
    (void)fsdpi_look(queue, NULL);
    if (atomic_load(&queue->moves) != moves) {
        fsdpi_mailbox_doubt(box, false);
        return false;
    }
    const fsdpi_notice notice = conclusion(queue);
    hear_of_end(&queue->inquest, &notice);
    fsdpi_mailbox_leave_notice(box, &queue->inquest.notice);
    give_up(queue, false);
    return true;
}

/* ---- the inquest --------------------------------------------------------------------------------------------------- */

/* All answer, and one of them gets on. */
static bool somebody_moves(const fsdpi_inquest *inquest)
{
    bool moves = false;

    for (int i = 0; i < inquest->n; i++) {
        moves = moves || (inquest->asked[i].moves && !inquest->asked[i].aside);
    }
    return moves && all_answer(inquest);
}

static bool is_complete(const fsdpi_inquest *inquest)
{
    return (all_answer(inquest) && inquest->elapsed > SHORTEST_INQUEST) || inquest->quiet > LONGEST_SILENCE ||
           inquest->elapsed > LONGEST_INQUEST;
}

/* Asks whoever is to be asked by now. True at the end. */
static bool inquire(fsdpi_queue *queue)
{
    fsdpi_inquest  *inquest = &queue->inquest;
    fsdpi_rank_list mine    = {0};

    if (!inquest->begun) {
        begin(inquest);
    }
    count_time(inquest);
    list_awaited(queue, &mine);
    ask(queue, &mine);
    inquest->begun = !is_complete(inquest);
    return !inquest->begun;
}

static bool inquire_and_give_up(fsdpi_queue *queue, fsdpi_patience *patience)
{
    if (!inquire(queue)) {
        return false;
    }
    if (somebody_moves(&queue->inquest)) {
        *patience = fsdpi_begin_to_wait(queue);
        return false;
    }
    return try_to_give_up(queue);
}

/* ---- warnings ------------------------------------------------------------------------------------------------------ */

/* SECONDS without movement, after which the next one is due. */
static int64_t next_warning(const fsdpi_queue *queue, const fsdpi_patience *patience)
{
    return (int64_t)core_of(queue)->config.stall_s << patience->warnings;
}

static bool is_stalled(const fsdpi_queue *queue, const fsdpi_patience *patience)
{
    enum { MOST_WARNINGS = 24 };

    return core_of(queue)->config.stall_s > 0 && patience->warnings < MOST_WARNINGS &&
           patience->waited > (double)next_warning(queue, patience);
}

/* Across nodes, whether rank 0 waits too is asked beside. */
static void ask_first_rank(fsdpi_queue *queue)
{
    const fsdpi_rank_list first   = {.n = 1};
    fsdpi_inquest        *inquest = &queue->inquest;

    if (fsdpi_is_on_node(queue->engine.nodes, 0) || find(inquest, 0) != NULL) {
        return;
    }
    ask(queue, &first);
    fsdpi_asked *asked = find(inquest, 0);
    if (asked != NULL) {
        asked->aside = true;
    }
}

static bool is_said_elsewhere(fsdpi_queue *queue)
{
    const fsdpi_asked *first = find(&queue->inquest, 0);

    return !fsdpi_is_on_node(queue->engine.nodes, 0) && first != NULL && first->answered && !first->moves;
}

/* One rank of the node looks into it. */
static bool begin_to_warn(fsdpi_queue *queue, fsdpi_patience *patience)
{
    enum { WARNINGS_OF_AN_OPERATION = 64 };
    const uint64_t number =
        (fsdpi_oldest(queue)->sequence + 1) * WARNINGS_OF_AN_OPERATION + (uint64_t)patience->warnings;

    if (!fsdpi_mailbox_claim(box_of(queue), number)) {
        patience->warnings++;
        return false;
    }
    begin(&queue->inquest);
    ask_first_rank(queue);
    return true;
}

static void look_into_stall(fsdpi_queue *queue, fsdpi_patience *patience)
{
    char          text[FSDPI_ERROR_BYTES];
    const int64_t seconds = next_warning(queue, patience);

    if (!queue->inquest.begun && !begin_to_warn(queue, patience)) {
        return;
    }
    if (!inquire(queue)) {
        return;
    }
    patience->warnings++;
    if (!somebody_moves(&queue->inquest) && !is_said_elsewhere(queue)) {
        const fsdpi_notice notice = conclusion(queue);
        fsdpi_inquest_describe_stall(queue, &notice, seconds, text, sizeof text);
        fsdpi_log(core_of(queue)->ctx, FSDP_LOG_WARN, "%s", text);
    }
}

/* Whether what has been given up concerns the head. */
static bool is_lost(const fsdpi_queue *queue, const fsdpi_patience *patience)
{
    const fsdpi_inquest *inquest = &queue->inquest;

    return inquest->known &&
           (inquest->notice.sequence <= fsdpi_oldest(queue)->sequence || patience->waited > LEAVE_BEHIND_AFTER);
}

/* A notice of this node, before what messages say. */
static bool look_at_node(fsdpi_queue *queue)
{
    const fsdpi_notice *notice = fsdpi_mailbox_is_doubted(box_of(queue)) ? fsdpi_mailbox_notice(box_of(queue)) : NULL;

    if (notice != NULL) {
        hear_of_end(&queue->inquest, notice);
    }
    return notice != NULL;
}

bool fsdpi_inquest_look(fsdpi_queue *queue, fsdpi_patience *patience)
{
    if (fsdpi_oldest(queue) == NULL || !is_of_use(queue)) {
        return false;
    }
    const bool on_node = look_at_node(queue);
    if (patience->waited > LISTENS_AFTER) {
        listen(queue, patience->waited < STILL_MOVES);
    }
    if (is_lost(queue, patience)) {
        join_others(queue, on_node);
        return true;
    }
    if (fsdpi_is_over(queue, patience)) {
        return inquire_and_give_up(queue, patience);
    }
    if (is_stalled(queue, patience)) {
        look_into_stall(queue, patience);
    } else {
        queue->inquest.begun = false;
    }
    return false;
}

/*
 * A rank that has been away for long may find all messages of an operation that others have given up meanwhile: so it listens
 * first. A second has so many ticks at least, and to listen sooner does no harm.
 */
static void listen_if_late(fsdpi_queue *queue)
{
    enum { LOOKS = 3, TICKS = 500000000 }; /* a look also lets MPI go on */
    const uint64_t most = (uint64_t)core_of(queue)->config.timeout_s * TICKS;
    const uint64_t now = now_of(queue), since = now - queue->inquest.ended;

    queue->inquest.ended = now;
    for (int i = 0; i < LOOKS && most > 0 && since > most; i++) {
        listen(queue, true);
    }
}

bool fsdpi_inquest_lets_end(fsdpi_queue *queue, const fsdp_request *request)
{
    const fsdpi_inquest *inquest = &queue->inquest;

    if (queue->engine.nodes->count > 1) {
        listen_if_late(queue);
    }
    if (fsdpi_mailbox_is_doubted(box_of(queue))) {
        const fsdpi_notice *notice = fsdpi_mailbox_notice(box_of(queue));
        return notice != NULL && notice->sequence > request->sequence;
    }
    return !inquest->known || inquest->notice.sequence > request->sequence;
}
