/**
 * @file
 * Chooses the table for the processor that the program runs on.
 */
#include <stdbool.h>
#include <string.h>

#include "kernels/host/tables.h"
#include "kernels/host/walk.h"
#include "kernels/kernels.h"

atomic_size_t fsdpi_pages_walked  = 1;
atomic_bool   fsdpi_lines_asked   = false;
atomic_bool   fsdpi_past_favoured = false;

#ifdef FSDPI_KERNELS_X86_64
#include <cpuid.h>

/** Clang 14 knows no name for F16C. That the system saves the wide registers is part of the check for AVX2. */
static bool has_f16c(void)
{
    unsigned eax, ebx, ecx, edx;

    return __get_cpuid(1, &eax, &ebx, &ecx, &edx) != 0 && (ecx & bit_F16C) != 0;
}

static bool runs_avx2(void)
{
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && has_f16c();
}

static bool runs_avx512(void)
{
    return runs_avx2() && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
           __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq");
}

static size_t pages_to_walk(void)
{
    return __builtin_cpu_is("intel") ? 4 : 1;
}

static bool gains_by_asking(void)
{
    return __builtin_cpu_is("amd");
}

static bool favours_past(void)
{
    return __builtin_cpu_is("intel");
}
#else
static size_t pages_to_walk(void)
{
    return 1;
}

static bool gains_by_asking(void)
{
    return false;
}

static bool favours_past(void)
{
    return false;
}
#endif

static bool runs_everywhere(void)
{
    return true;
}

/* Best first. */
static const struct {
    const fsdpi_kernels *kernels;
    bool (*runs_here)(void);
} tables[] = {
#ifdef FSDPI_KERNELS_X86_64
    {&fsdpi_kernels_avx512, runs_avx512},
    {&fsdpi_kernels_avx2, runs_avx2},
#endif
#ifdef FSDPI_KERNELS_AARCH64
    {&fsdpi_kernels_neon, runs_everywhere},
#endif
    {&fsdpi_kernels_scalar, runs_everywhere},
};

bool fsdpi_kernels_favour_past(void)
{
    return atomic_load_explicit(&fsdpi_past_favoured, memory_order_relaxed);
}

const fsdpi_kernels *fsdpi_kernels_find(const char *name)
{
    bool any = strcmp(name, "auto") == 0;

    atomic_store_explicit(&fsdpi_pages_walked, pages_to_walk(), memory_order_relaxed);
    atomic_store_explicit(&fsdpi_lines_asked, gains_by_asking(), memory_order_relaxed);
    atomic_store_explicit(&fsdpi_past_favoured, favours_past(), memory_order_relaxed);
    for (size_t i = 0; i < sizeof tables / sizeof tables[0]; i++) {
        if ((any || strcmp(name, tables[i].kernels->name) == 0) && tables[i].runs_here()) {
            return tables[i].kernels;
        }
    }
    return NULL;
}
