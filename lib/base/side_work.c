#include "lib/base/side_work.h"

#include <stdatomic.h>
#include <stddef.h>

#include "lib/base/lock.h"

/* Who advances holds the lock meanwhile, so that nothing is removed under its hands; others do not wait for it. */
static struct {
    fsdpi_lock       lock;
    fsdpi_side_work *first;
    _Atomic int      n;
} list;

void fsdpi_side_work_add(fsdpi_side_work *work)
{
    fsdpi_lock_take(&list.lock);
    work->next   = list.first;
    work->listed = true;
    list.first   = work;
    (void)atomic_fetch_add_explicit(&list.n, 1, memory_order_relaxed);
    fsdpi_lock_give(&list.lock);
}

void fsdpi_side_work_remove(fsdpi_side_work *work)
{
    if (!work->listed) {
        return;
    }
    fsdpi_lock_take(&list.lock);
    for (fsdpi_side_work **link = &list.first; *link != NULL; link = &(*link)->next) {
        if (*link == work) {
            *link = work->next;
            break;
        }
    }
    work->listed = false;
    (void)atomic_fetch_sub_explicit(&list.n, 1, memory_order_relaxed);
    fsdpi_lock_give(&list.lock);
}

fsdpi_progress fsdpi_side_work_advance(const fsdpi_side_work *own)
{
    fsdpi_progress all = FSDPI_FINISHED;

    if (atomic_load_explicit(&list.n, memory_order_relaxed) <= (own != NULL && own->listed ? 1 : 0) ||
        !fsdpi_lock_try(&list.lock)) {
        return FSDPI_FINISHED;
    }
    for (fsdpi_side_work *work = list.first; work != NULL; work = work->next) {
        const fsdpi_progress one = work != own ? work->advance(work->owner) : FSDPI_FINISHED;

        all = one == FSDPI_MOVED || all == FSDPI_FINISHED ? one : all;
    }
    fsdpi_lock_give(&list.lock);
    return all;
}
