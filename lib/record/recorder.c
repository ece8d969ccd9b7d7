#include "lib/record/recorder.h"

#include <string.h>

/* ---- names --------------------------------------------------------------------------------------------------------- */

static size_t place_of(const char *name)
{
    return ((uintptr_t)name >> 2) * 0x9E3779B1u >> 7 & (FSDPI_NAMES_HASHED - 1);
}

/* The number that stands for it, or 0; and where it is, or would be. */
static uint8_t look_up(fsdpi_recorder_names *names, const char *name, size_t *at)
{
    const char *key;

    *at = place_of(name);
    while ((key = atomic_load_explicit(&names->keys[*at], memory_order_acquire)) != NULL) {
        if (key == name) {
            return atomic_load_explicit(&names->numbers[*at], memory_order_relaxed);
        }
        *at = (*at + 1) & (FSDPI_NAMES_HASHED - 1);
    }
    return 0;
}

/* One text may lie at several addresses. */
static uint64_t find_text(const fsdpi_recorded_section *section, const char *name, uint64_t n)
{
    for (uint64_t i = 1; i < n; i++) {
        if (strncmp(section->names[i], name, FSDPI_RECORDED_NAME_BYTES - 1) == 0) {
            return i;
        }
    }
    return n;
}

static void copy_text(char *to, const char *text, size_t size)
{
    size_t n = 0;

    for (; n < size - 1 && text[n] != '\0'; n++) {
        to[n] = text[n];
    }
    memset(to + n, 0, size - n);
}

static uint8_t add(fsdpi_recorder *recorder, const char *name)
{
    fsdpi_recorded_section *section = recorder->section;
    const uint64_t          n       = atomic_load_explicit(&section->n_names, memory_order_relaxed);
    size_t                  at;
    uint8_t                 number = look_up(&recorder->names, name, &at);

    if (number != 0) {
        return number;
    }
    const uint64_t found = find_text(section, name, n);
    if (found >= FSDPI_RECORDED_NAMES) {
        return 0;
    }
    if (found == n) {
        copy_text(section->names[n], name, FSDPI_RECORDED_NAME_BYTES);
        atomic_store_explicit(&section->n_names, n + 1, memory_order_release);
    }
    number = (uint8_t)found;
    if (recorder->names.n < FSDPI_NAMES_HASHED - 1) { /* one stays free, where a search ends */
        recorder->names.n++;
        atomic_store_explicit(&recorder->names.numbers[at], number, memory_order_relaxed);
        atomic_store_explicit(&recorder->names.keys[at], name, memory_order_release);
    }
    return number;
}

uint8_t fsdpi_recorder_name(fsdpi_recorder *recorder, const char *name)
{
    size_t  at;
    uint8_t number = look_up(&recorder->names, name, &at);

    if (number == 0) {
        fsdpi_lock_take(&recorder->names.lock);
        number = add(recorder, name);
        fsdpi_lock_give(&recorder->names.lock);
    }
    return number;
}

/* As fsdpi_recorder_name(), without a call where the first place that is looked at has it: every operation asks for three. */
static inline uint8_t name_of(fsdpi_recorder *recorder, const char *name)
{
    const size_t at = place_of(name);

    return atomic_load_explicit(&recorder->names.keys[at], memory_order_acquire) == name
               ? atomic_load_explicit(&recorder->names.numbers[at], memory_order_relaxed)
               : fsdpi_recorder_name(recorder, name);
}

/* ---- operations ---------------------------------------------------------------------------------------------------- */

static _Atomic uint64_t *entry_of(const fsdpi_recorder *recorder, uint64_t sequence)
{
    return recorder->entries + (sequence & recorder->mask) * FSDPI_RECORDED_WORDS;
}

static void store(_Atomic uint64_t *word, uint64_t value)
{
    atomic_store_explicit(word, value, memory_order_relaxed);
}

static uint64_t load(const _Atomic uint64_t *word)
{
    return atomic_load_explicit(word, memory_order_relaxed);
}

static uint64_t mark(int which, uint64_t value)
{
    return (value & 0xff) << 8 * which;
}

static void store_label(_Atomic uint64_t *words, const char *label)
{
    union {
        char     text[FSDPI_RECORDED_LABEL_BYTES];
        uint64_t words[FSDPI_RECORDED_LABEL_BYTES / sizeof(uint64_t)];
    } copy;

    copy_text(copy.text, label, sizeof copy.text);
    for (size_t i = 0; i < sizeof copy.words / sizeof *copy.words; i++) {
        store(&words[i], copy.words[i]);
    }
}

static void tell(const fsdpi_recorder *recorder, fsdpi_recorded_doing doing, uint64_t sequence, uint64_t since)
{
    store(&recorder->section->since, since);
    atomic_store_explicit(&recorder->section->doing, (uint64_t)doing << FSDPI_DOING_SHIFT | sequence,
                          memory_order_release);
}

/* Several threads may do so at once; the word never falls. */
static void raise_to(_Atomic uint64_t *word, uint64_t value)
{
    uint64_t is = load(word);

    while (is < value &&
           !atomic_compare_exchange_weak_explicit(word, &is, value, memory_order_release, memory_order_relaxed)) {
    }
}

static uint64_t marks_of(fsdpi_recorder *recorder, const fsdpi_recorder_call *call)
{
    if (*call->marks == 0) {
        *call->marks = mark(FSDPI_MARK_COLLECTIVE, name_of(recorder, call->collective)) |
                       mark(FSDPI_MARK_CALL, name_of(recorder, call->call)) |
                       mark(FSDPI_MARK_DTYPE, (uint64_t)call->dtype + 1) | mark(FSDPI_MARK_OP, (uint64_t)call->op + 1);
    }
    return *call->marks;
}

void fsdpi_recorder_issue(fsdpi_recorder *recorder, const fsdpi_recorder_call *call, bool begun, bool waits,
                          bool beside)
{
    if (recorder->section == NULL) {
        return;
    }
    _Atomic uint64_t *entry   = entry_of(recorder, call->sequence);
    const uint64_t    now     = fsdpi_ticks(recorder->clock);
    const uint64_t    version = load(&entry[FSDPI_WORD_VERSION]);

    store(&entry[FSDPI_WORD_VERSION], version + 1);
    atomic_thread_fence(memory_order_release);
    store(&entry[FSDPI_WORD_SEQUENCE], call->sequence + 1);
    store(&entry[FSDPI_WORD_ISSUED], now);
    store(&entry[FSDPI_WORD_BEGUN], begun ? now : 0);
    store(&entry[FSDPI_WORD_ENDED], 0);
    store(&entry[FSDPI_WORD_COUNT], call->count);
    store(&entry[FSDPI_WORD_BYTES], call->bytes);
    store(&entry[FSDPI_WORD_MARKS],
          marks_of(recorder, call) | mark(FSDPI_MARK_STATE, begun ? FSDPI_RECORDED_AGREEING : FSDPI_RECORDED_ISSUED));
    if (call->label != NULL) {
        store_label(&entry[FSDPI_WORD_LABEL], call->label);
    } else {
        store(&entry[FSDPI_WORD_LABEL], 0); /* NUL at its beginning */
    }
    store(&entry[FSDPI_WORD_ROOT], (uint64_t)call->root + 1);
    atomic_store_explicit(&entry[FSDPI_WORD_VERSION], version + 2, memory_order_release);
    raise_to(&recorder->section->issued, call->sequence + 1);
    if (!beside) {
        tell(recorder, waits ? FSDPI_DOING_WAITING : FSDPI_DOING_USER, call->sequence, now);
    }
}

/* Whether its entry is still that operation's: there may be more under way than are kept. */
static bool has_entry(const _Atomic uint64_t *entry, uint64_t sequence)
{
    return load(&entry[FSDPI_WORD_SEQUENCE]) == sequence + 1;
}

static void change_marks(_Atomic uint64_t *entry, uint64_t which, uint64_t marks)
{
    atomic_store_explicit(&entry[FSDPI_WORD_MARKS], (load(&entry[FSDPI_WORD_MARKS]) & ~which) | marks,
                          memory_order_release);
}

void fsdpi_recorder_begin(fsdpi_recorder *recorder, uint64_t sequence)
{
    if (recorder->section == NULL) {
        return;
    }
    _Atomic uint64_t *entry = entry_of(recorder, sequence);
    if (has_entry(entry, sequence)) {
        store(&entry[FSDPI_WORD_BEGUN], fsdpi_ticks(recorder->clock));
        change_marks(entry, mark(FSDPI_MARK_STATE, 0xff), mark(FSDPI_MARK_STATE, FSDPI_RECORDED_AGREEING));
    }
}

void fsdpi_recorder_move(fsdpi_recorder *recorder, uint64_t sequence, const char *algorithm, bool is_long)
{
    if (recorder->section == NULL) {
        return;
    }
    _Atomic uint64_t *entry = entry_of(recorder, sequence);
    if (has_entry(entry, sequence)) {
        change_marks(entry,
                     mark(FSDPI_MARK_STATE, 0xff) | mark(FSDPI_MARK_LANE, 0xff) | mark(FSDPI_MARK_ALGORITHM, 0xff),
                     mark(FSDPI_MARK_STATE, FSDPI_RECORDED_MOVING) | mark(FSDPI_MARK_LANE, is_long) |
                         mark(FSDPI_MARK_ALGORITHM, name_of(recorder, algorithm)));
    }
}

void fsdpi_recorder_end(fsdpi_recorder *recorder, uint64_t sequence, const char *algorithm, fsdp_status status,
                        uint64_t now)
{
    if (recorder->section == NULL) {
        return;
    }
    _Atomic uint64_t *entry = entry_of(recorder, sequence);
    if (has_entry(entry, sequence)) {
        const uint64_t state = status == FSDP_OK ? FSDPI_RECORDED_DONE : FSDPI_RECORDED_FAILED;
        const uint64_t name  = algorithm != NULL ? name_of(recorder, algorithm) : 0;
        store(&entry[FSDPI_WORD_ENDED], now);
        change_marks(entry,
                     mark(FSDPI_MARK_STATE, 0xff) | mark(FSDPI_MARK_STATUS, 0xff) | mark(FSDPI_MARK_ALGORITHM, 0xff),
                     mark(FSDPI_MARK_STATE, state) | mark(FSDPI_MARK_STATUS, (uint64_t)status) |
                         mark(FSDPI_MARK_ALGORITHM, name));
    }
    store(&recorder->section->ended, load(&recorder->section->ended) + 1); /* by one thread at a time */
}

uint64_t fsdpi_recorder_ended(const fsdpi_recorder *recorder, uint64_t sequence)
{
    if (recorder->section == NULL) {
        return 0;
    }
    const _Atomic uint64_t *entry = entry_of(recorder, sequence);
    return has_entry(entry, sequence) ? load(&entry[FSDPI_WORD_ENDED]) : 0;
}

void fsdpi_recorder_wait(fsdpi_recorder *recorder, uint64_t sequence)
{
    if (recorder->section != NULL) {
        tell(recorder, FSDPI_DOING_WAITING, sequence, fsdpi_ticks(recorder->clock));
    }
}

/* The stamp of its end will do, which is moments ago. */
void fsdpi_recorder_go_on(fsdpi_recorder *recorder, uint64_t sequence)
{
    if (recorder->section == NULL) {
        return;
    }
    const uint64_t ended = fsdpi_recorder_ended(recorder, sequence);
    tell(recorder, FSDPI_DOING_USER, sequence, ended != 0 ? ended : fsdpi_ticks(recorder->clock));
}
