/*
 * The one rule of reductions: within a node in rank order, then over the nodes by their lowest ranks. 16-bit types are added
 * up in f32 and rounded once per level. A mean is the sum divided by the number of ranks, before the last rounding.
 */
#include "tests/shard/random/numbers.h"
#include "tests/shard/random/serial.h"

/* Some ranks in order, of which every `node_size` are a node (0: all). */
typedef struct rank_list {
    const float *values;
    int          n, node_size;
} rank_list;

static float sum_of_node(const rank_list *list, int begin, int end)
{
    float sum = list->values[begin];

    for (int r = begin + 1; r < end; r++) {
        sum += list->values[r];
    }
    return sum;
}

/* Divided by `divisor`, which is 1 for a sum. */
static float reduce(const rank_list *list, fsdp_dtype dtype, int divisor)
{
    const int node = list->node_size == 0 || list->node_size > list->n ? list->n : list->node_size;
    float     sum  = 0.0F;

    for (int begin = 0; begin < list->n; begin += node) {
        const int   end  = begin + node < list->n ? begin + node : list->n;
        const float part = sum_of_node(list, begin, end);
        const float term = node < list->n ? nearest_of(dtype, part) : part;

        sum = begin == 0 ? term : sum + term;
    }
    return nearest_of(dtype, divisor == 1 ? sum : sum / (float)divisor);
}

/* ---- groups ------------------------------------------------------------------------------------------------------ */

static bool is_hybrid(const planned_segment *segment)
{
    return segment->options.strategy == FSDP_HYBRID_SHARD || segment->options.strategy == FSDP_HYBRID_SHARD_ZERO2;
}

int serial_group_size(const planned_segment *segment)
{
    const int node = segment->config.node_size;
    const int all  = node == 0 || node > segment->size ? segment->size : node;

    if (!is_hybrid(segment)) {
        return segment->size;
    }
    return segment->options.group_size == 0 ? all : segment->options.group_size;
}

int serial_hook_group(const planned_segment *segment)
{
    return segment->options.strategy == FSDP_NO_SHARD ? 1 : serial_group_size(segment);
}

/* Groups that are nodes are nodes of one each to each other. */
static rank_list list_of_groups(const planned_segment *segment, const float *values, int group)
{
    const int  node    = segment->config.node_size;
    const bool by_node = group == node && segment->size % node == 0;

    return (rank_list){values, segment->size / group, by_node ? 1 : node};
}

float serial_mean_of_group(const planned_segment *segment, const float *values)
{
    const int       group = serial_hook_group(segment);
    const rank_list list  = {values, group, segment->config.node_size};

    return reduce(&list, FSDP_F32, 1) / (float)group;
}

float serial_mean_of_groups(const planned_segment *segment, const float *values, fsdp_dtype dtype)
{
    const rank_list list = list_of_groups(segment, values, serial_hook_group(segment));

    return reduce(&list, dtype, list.n);
}

bool serial_has_groups(const planned_segment *segment)
{
    return serial_group_size(segment) < segment->size;
}

/* f32 and bf16 are summed and divided at the end; f16, whose range is narrow, is a mean of means. */
void serial_sums_of_groups(const planned_segment *segment, const float *values, fsdp_dtype dtype, float *sums)
{
    const int group = serial_group_size(segment);

    for (int g = 0; g * group < segment->size; g++) {
        const rank_list list = {values + (ptrdiff_t)g * group, group, segment->config.node_size};

        sums[g] = reduce(&list, dtype, dtype == FSDP_F16 ? group : 1);
    }
}

static float mean_over_groups(const planned_segment *segment, const float *sums, fsdp_dtype dtype)
{
    const bool      means = dtype == FSDP_F16;
    const rank_list list  = list_of_groups(segment, sums, serial_group_size(segment));
    const float     sum   = reduce(&list, dtype, means ? list.n : 1);

    return means ? sum : nearest_of(dtype, sum / (float)segment->size);
}

/* ---- hooks ------------------------------------------------------------------------------------------------------- */

/* A hook sees means of groups. `sums` are those of groups; NULL: of `values`. */
static float mean_by_hook(const planned_segment *segment, const float *values, const float *sums)
{
    const fsdp_dtype half  = segment->hook == HOOK_BF16 ? FSDP_BF16 : FSDP_F16;
    const int        group = serial_hook_group(segment), n = segment->size / group;
    float            means[MOST_RANKS];

    for (int g = 0; g < n; g++) {
        const float mean =
            sums != NULL ? sums[g] / (float)group : serial_mean_of_group(segment, values + (ptrdiff_t)g * group);

        means[g] = segment->hook == HOOK_CUSTOM ? before_hook(mean, g) : n > 1 ? nearest_of(half, mean) : mean;
    }
    if (segment->hook == HOOK_CUSTOM) {
        return after_hook(serial_mean_of_groups(segment, means, FSDP_F32));
    }
    return n > 1 ? serial_mean_of_groups(segment, means, half) : means[0];
}

/* PowerSGD's is one of f32, but for rounding. */
static bool is_called(const planned_segment *segment)
{
    return segment->hook != HOOK_NONE && segment->hook != HOOK_POWER_SGD &&
           (segment->options.strategy == FSDP_NO_SHARD || serial_group_size(segment) < segment->size);
}

bool serial_uses_int8(const planned_segment *segment)
{
    return segment->hook == HOOK_INT8 && is_called(segment);
}

/* ---- strategies -------------------------------------------------------------------------------------------------- */

float serial_mean_of_sums(const planned_segment *segment, const float *sums, fsdp_dtype dtype)
{
    return is_called(segment) ? mean_by_hook(segment, NULL, sums) : mean_over_groups(segment, sums, dtype);
}

float serial_mean(const planned_segment *segment, const float *values, fsdp_dtype dtype)
{
    const rank_list all = {values, segment->size, segment->config.node_size};

    return is_called(segment) ? mean_by_hook(segment, values, NULL) : reduce(&all, dtype, segment->size);
}
