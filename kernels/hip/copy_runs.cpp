/* Runs of bytes between tensors and a flat vector: many small copies in one launch. */
#include "kernels/hip/element.h"

namespace fsdpi
{

enum { RUNS_PER_LAUNCH = 64 };

/* Words are copied one by one, but bytes 16 at a time where both ends can be brought to that. */
template <class Word> struct words {
    enum { WIDTH = sizeof(Word) == 1 ? 16 : 1 };

    Word       *to;
    const Word *from;

    template <int N> FSDPI_DEVICE void run(size_t i) const
    {
        store<N>(to + i, load<N>(from + i));
    }
};

struct runs {
    unsigned char       *to[RUNS_PER_LAUNCH];
    const unsigned char *from[RUNS_PER_LAUNCH];
    cut                  plan[RUNS_PER_LAUNCH];
    bool                 by_fours[RUNS_PER_LAUNCH];
    unsigned             n;

    FSDPI_DEVICE void go(size_t thread, size_t n_threads) const
    {
        for (unsigned r = 0; r < n; r++) {
            if (by_fours[r]) {
                const words<uint32_t> fours = {reinterpret_cast<uint32_t *>(to[r]),
                                               reinterpret_cast<const uint32_t *>(from[r])};

                elementwise<words<uint32_t>>{fours, {0, 0, plan[r].count / 4}}.go(thread, n_threads);
            } else {
                elementwise<words<unsigned char>>{{to[r], from[r]}, plan[r]}.go(thread, n_threads);
            }
        }
    }
};

/* Returns how many threads have something to do. */
inline size_t add(runs &all, const fsdpi_gpu_run &one)
{
    const operand   ends[]   = {{one.to, 1}, {one.from, 1}};
    const uintptr_t together = reinterpret_cast<uintptr_t>(one.to) | reinterpret_cast<uintptr_t>(one.from) | one.bytes;
    const cut       plan     = cut_for(ends, 2, one.bytes, 16);
    const unsigned  r        = all.n++;

    all.to[r]       = static_cast<unsigned char *>(one.to);
    all.from[r]     = static_cast<const unsigned char *>(one.from);
    all.plan[r]     = plan;
    all.by_fours[r] = plan.n_vectors == 0 && together % 4 == 0;
    return plan.n_vectors > 0 ? plan.n_vectors : one.bytes;
}

} // namespace fsdpi

int fsdpi_gpu_copy_runs(const fsdpi_gpu_run *runs, size_t n_runs, fsdpi_gpu_stream stream)
{
    for (size_t begin = 0; begin < n_runs; begin += fsdpi::RUNS_PER_LAUNCH) {
        const size_t end    = n_runs - begin < fsdpi::RUNS_PER_LAUNCH ? n_runs : begin + fsdpi::RUNS_PER_LAUNCH;
        fsdpi::runs  kernel = {};
        size_t       work   = 0;

        for (size_t r = begin; r < end; r++) {
            const size_t one = runs[r].bytes > 0 ? fsdpi::add(kernel, runs[r]) : 0;

            work = one > work ? one : work;
        }
        const int failed = fsdpi::launch(kernel, work, stream);
        if (failed != 0) {
            return failed;
        }
    }
    return 0;
}
