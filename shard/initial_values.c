#include "fsdp/random.h"
#include "shard/model.h"

static float initial_value(const fsdpi_tensor *tensor, uint64_t seed, uint64_t stream, size_t index)
{
    switch (tensor->fill) {
    case FSDP_FILL_CONSTANT:
        break;
    case FSDP_FILL_NORMAL:
        return (float)(tensor->a + tensor->b * fsdp_random_normal(seed, stream, index));
    case FSDP_FILL_UNIFORM:
        return (float)(tensor->a + (tensor->b - tensor->a) * fsdp_random_uniform(seed, stream, index));
    }
    return (float)tensor->a;
}

static void draw_interval(const fsdp_unit *unit, const fsdp_interval *interval, float *slice)
{
    const fsdpi_tensor *tensor = &unit->tensors[interval->tensor];
    const uint64_t      seed   = unit->model->options.seed;
    const uint64_t      stream = fsdp_random_stream(tensor->name);

    for (size_t i = 0; i < interval->count; i++) {
        slice[interval->shard_begin + i] = initial_value(tensor, seed, stream, interval->tensor_begin + i);
    }
}

void fsdpi_draw_initial_values(fsdp_unit *unit)
{
    const fsdpi_held held = fsdpi_held_slices(unit->model);

    for (int i = 0; i < held.n; i++) {
        const size_t n = fsdpi_held_intervals(unit, i);

        for (size_t k = 0; k < n; k++) {
            draw_interval(unit, &unit->intervals[k], fsdpi_slice_in(unit, unit->master, i));
        }
    }
}
