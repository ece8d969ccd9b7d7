#include "lib/progress/own_core.h"

#include "lib/base/clock.h"

void fsdpi_own_core_take(fsdpi_own_core *core, const fsdpi_binding *binding, bool asked_for, pthread_t thread)
{
    core->was_asked_for = asked_for;
    core->has           = fsdpi_bind_thread(binding, thread);
}

static bool may_be_lost(const fsdpi_own_core *core)
{
    return core->has && !core->was_asked_for;
}

void fsdpi_own_core_begin(fsdpi_own_core *core, double now)
{
    if (may_be_lost(core)) {
        core->since = now;
        core->used  = fsdpi_thread_nanoseconds();
    }
}

void fsdpi_own_core_end(fsdpi_own_core *core, double now)
{
    if (may_be_lost(core)) {
        const double passed = now - core->since;
        core->seconds += passed;
        core->lost += passed - 1e-9 * (double)(fsdpi_thread_nanoseconds() - core->used);
    }
}

/* What the system does for a moment does not count: of several spells in a row, others must have had a good part. */
bool fsdpi_own_core_is_lost(fsdpi_own_core *core, double now)
{
    enum { SPELLS = 3 };
    static const double SPELL_SECONDS = 10e-3, GOOD_PART = 0.25;

    if (!may_be_lost(core) || core->seconds + now - core->since < SPELL_SECONDS) {
        return false;
    }
    fsdpi_own_core_end(core, now);
    core->shared  = core->lost > GOOD_PART * core->seconds ? core->shared + 1 : 0;
    core->seconds = core->lost = 0;
    fsdpi_own_core_begin(core, now);
    if (core->shared < SPELLS) {
        return false;
    }
    fsdpi_unbind_thread();
    core->has = false;
    return true;
}
