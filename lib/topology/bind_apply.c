/* The system calls of binding. */
#include <errno.h>
#include <linux/mempolicy.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "lib/base/lock.h"
#include "lib/device/gpu.h"
#include "lib/topology/bind.h"
#include "lib/topology/mask.h"

enum { WORD_BITS = 8 * sizeof(unsigned long) };

/* The system wants words of its own, which where bytes stand the other way round are not those of a mask. */
typedef struct system_mask {
    unsigned long word[FSDPI_MASK_BITS / WORD_BITS];
} system_mask;

static system_mask to_system(const fsdp_mask *mask)
{
    system_mask bits = {{0}};

    for (int i = 0; i < FSDPI_MASK_BITS; i++) {
        bits.word[i / WORD_BITS] |= (unsigned long)fsdp_mask_has(mask, i) << (i % WORD_BITS);
    }
    return bits;
}

static bool mask_of_thread(int thread, fsdp_mask *mask)
{
    system_mask bits = {{0}};

    *mask = (fsdp_mask){{0}};
    if (sched_getaffinity(thread, sizeof bits, (cpu_set_t *)(void *)&bits) != 0) {
        return false;
    }
    for (int i = 0; i < FSDPI_MASK_BITS; i++) {
        if ((bits.word[i / WORD_BITS] >> (i % WORD_BITS) & 1) != 0) {
            fsdpi_mask_add(mask, i);
        }
    }
    return true;
}

bool fsdpi_mask_now(fsdp_mask *mask)
{
    return mask_of_thread(0, mask);
}

/*
 * What the launcher has given this process, once a context has narrowed it; later ones would take the narrower mask for that.
 * The first mask stands: what somebody else widens or narrows in between is not the launcher's.
 */
static struct {
    fsdpi_lock lock;
    bool       known;
    fsdp_mask  mask;
} launched;

static void remember_launched(const fsdp_mask *mask)
{
    fsdpi_lock_take(&launched.lock);
    launched.mask  = launched.known ? launched.mask : *mask;
    launched.known = true;
    fsdpi_lock_give(&launched.lock);
}

fsdp_mask fsdpi_mask_launched(const fsdp_mask *now)
{
    fsdp_mask mask = *now;

    fsdpi_lock_take(&launched.lock);
    if (launched.known) {
        fsdpi_mask_include(&mask, &launched.mask);
    }
    fsdpi_lock_give(&launched.lock);
    return mask;
}

/* What the process had before its own code ran, and what a context has made of a thread's mask last. */
static struct {
    fsdpi_lock lock;
    bool       known, narrowed;
    fsdp_mask  at_load, narrower;
} masks;

__attribute__((constructor)) static void look_at_load(void)
{
    masks.known = fsdpi_mask_now(&masks.at_load);
}

static void remember_narrower(const fsdp_mask *mask)
{
    fsdpi_lock_take(&masks.lock);
    masks.narrower = *mask;
    masks.narrowed = true;
    fsdpi_lock_give(&masks.lock);
}

bool fsdpi_is_bound_by_program(const fsdp_mask *now)
{
    fsdpi_lock_take(&masks.lock);
    const bool by_program = masks.known && !fsdpi_mask_equal(now, &masks.at_load) &&
                            !(masks.narrowed && fsdpi_mask_equal(now, &masks.narrower));
    fsdpi_lock_give(&masks.lock);
    return by_program;
}

static bool set_threads(int thread, const fsdp_mask *mask)
{
    const system_mask bits = to_system(mask);

    return sched_setaffinity(thread, sizeof bits, (const cpu_set_t *)(const void *)&bits) == 0;
}

static int own_number(void)
{
    return (int)syscall(SYS_gettid);
}

static void note(char *failed, size_t size, const char *what)
{
    const size_t used = strlen(failed);

    (void)snprintf(failed + used, size - used, "%s%s: %s", used > 0 ? "; " : "", what, strerror(errno));
}

static bool apply_device(int device, fsdpi_binding *binding)
{
    const int before = device >= 0 ? fsdpi_gpu_selected() : -1;

    if (device < 0 || before == device) {
        return true;
    }
    if (!fsdpi_gpu_select(device)) {
        return false;
    }
    binding->device_before = before;
    return true;
}

static bool apply_threads(const fsdp_mask *wanted, fsdpi_binding *binding)
{
    fsdp_mask now;

    if (!fsdpi_mask_now(&now)) {
        return fsdpi_mask_is_empty(wanted); /* who cannot be asked cannot have said what to narrow */
    }
    const fsdp_mask narrower = fsdpi_mask_both(&now, wanted);
    if (fsdpi_mask_is_empty(&narrower) || fsdpi_mask_equal(&narrower, &now)) {
        return true;
    }
    remember_launched(&now);
    binding->threads_before = now;
    binding->threads_after  = narrower;
    binding->thread         = own_number();
    binding->set_threads    = set_threads(0, &narrower);
    if (binding->set_threads) {
        remember_narrower(&narrower);
    }
    return binding->set_threads;
}

/* A policy that somebody has set, as numactl does, stays. */
static bool apply_memory(int numa, bool strict, fsdpi_binding *binding)
{
    int       policy = MPOL_DEFAULT;
    fsdp_mask node   = {{0}};

    if (numa < 0 || (syscall(SYS_get_mempolicy, &policy, NULL, 0UL, NULL, 0UL) == 0 && policy != MPOL_DEFAULT)) {
        return true;
    }
    fsdpi_mask_add(&node, numa);
    const system_mask bits = to_system(&node);
    binding->thread        = own_number();
    binding->set_memory =
        syscall(SYS_set_mempolicy, strict ? MPOL_BIND : MPOL_PREFERRED, &bits, (unsigned long)numa + 2) == 0;
    return binding->set_memory;
}

void fsdpi_bind_apply(const fsdpi_bind_order *order, bool strict, fsdpi_binding *binding, char *failed, size_t size)
{
    binding->spare         = order->spare;
    binding->device_before = -1;
    failed[0]              = '\0';
    errno                  = 0;
    if (!apply_device(order->device, binding)) {
        (void)snprintf(failed, size, "HIP does not select device %d", order->device);
    }
    if (!apply_threads(&order->threads, binding)) {
        note(failed, size, "cores");
    }
    if (!apply_memory(order->memory, strict, binding)) {
        note(failed, size, "memory");
    }
}

void fsdpi_bind_undo(fsdpi_binding *binding)
{
    if (binding->set_memory) {
        (void)syscall(SYS_set_mempolicy, MPOL_DEFAULT, NULL, 0UL);
    }
    if (binding->set_threads) {
        (void)set_threads(binding->thread, &binding->threads_before);
    }
    if (binding->device_before >= 0) {
        (void)fsdpi_gpu_select(binding->device_before);
    }
    *binding = (fsdpi_binding){.spare = -1, .share = 1.0, .device_before = -1};
}

/* What somebody has set since stays. */
void fsdpi_bind_give_back(fsdpi_binding *binding)
{
    const bool is_own = binding->thread == own_number();
    int        policy = MPOL_DEFAULT;
    fsdp_mask  now;

    binding->set_threads = binding->set_threads && mask_of_thread(binding->thread, &now) &&
                           fsdpi_mask_equal(&now, &binding->threads_after);
    binding->set_memory = binding->set_memory && is_own &&
                          syscall(SYS_get_mempolicy, &policy, NULL, 0UL, NULL, 0UL) == 0 &&
                          (policy == MPOL_PREFERRED || policy == MPOL_BIND);
    binding->device_before = -1; /* a GPU that is in use stays selected */
    fsdpi_bind_undo(binding);
}

bool fsdpi_bind_thread(const fsdpi_binding *binding, pthread_t thread)
{
    fsdp_mask spare = {{0}};

    if (binding->spare < 0) {
        return false;
    }
    fsdpi_mask_add(&spare, binding->spare);
    const system_mask bits = to_system(&spare);
    return pthread_setaffinity_np(thread, sizeof bits, (const cpu_set_t *)(const void *)&bits) == 0;
}

void fsdpi_unbind_thread(void)
{
    fsdp_mask mask;

    if (mask_of_thread(getpid(), &mask)) {
        const system_mask bits = to_system(&mask);
        (void)sched_setaffinity(0, sizeof bits, (const cpu_set_t *)(const void *)&bits);
    }
}
