/* What a hook sees of a slice: the tensors in it, whole rows of those that it cuts, and the ends of cut rows. */
#include <string.h>

#include "shard/hooks/hook.h"
#include "shard/hooks/model_hook.h"
#include "shard/state/slices.h"
#include "shard/state/tensor.h"
#include "tests/shard/small_model.h"

static size_t elements_of(const fsdp_gradient_tensor *part)
{
    size_t count = 1;

    for (size_t d = 0; d < part->n_dims; d++) {
        count *= part->shape[d];
    }
    return count;
}

static const fsdp_tensor *tensor_called(const char *name)
{
    for (size_t t = 0; t < N_TENSORS; t++) {
        if (strcmp(TENSORS[t].name, name) == 0) {
            return &TENSORS[t];
        }
    }
    fail_msg("no tensor is called %s", name);
    return NULL;
}

/* Rows are as long as the tensor's; ends of rows are shorter. `first` is where the part begins in the tensor. */
static void check_part(const fsdp_gradient_tensor *part, size_t first)
{
    const fsdp_tensor *tensor = tensor_called(part->name);

    if (tensor->n_dims < 2) {
        assert_int_equal(tensor->n_dims == 0 ? 0 : 1, part->n_dims);
    } else if (part->n_dims == tensor->n_dims) {
        assert_memory_equal(tensor->shape + 1, part->shape + 1, (tensor->n_dims - 1) * sizeof part->shape[0]);
        assert_int_equal(0, first % (elements_of(part) / part->shape[0]));
    } else {
        assert_int_equal(1, part->n_dims);
        assert_true(part->shape[0] < tensor->shape[1]);
    }
}

/* ELEMENTS of tensors in that range of a flat parameter. */
static size_t elements_in(const fsdpi_flat *flat, size_t begin, size_t end)
{
    size_t n = 0;

    for (size_t k = 0; k < flat->n_tensors; k++) {
        for (size_t e = flat->tensors[k]->offset; e < flat->tensors[k]->offset + flat->tensors[k]->count; e++) {
            n += e >= begin && e < end;
        }
    }
    return n;
}

/* Part follows part, a tensor's first at the next 64 bytes, and each tensor element is in the part where the layout has it. */
static void check_flat(fsdpi_flat *flat)
{
    const fsdp_gradient gradient = fsdpi_gradient_for_hook(flat);
    const size_t        begin    = fsdpi_held_begin(flat);
    size_t              at = 0, n = 0;
    const char         *last = "";

    assert_int_equal(fsdpi_held_elements(flat), gradient.count);
    for (size_t p = 0; p < gradient.n_tensors; p++) {
        const fsdp_gradient_tensor *part = &gradient.tensors[p];

        at   = strcmp(part->name, last) == 0 ? at : (at + 15) / 16 * 16;
        last = part->name;
        assert_int_equal(at, part->offset);
        check_part(part, begin + at - fsdpi_find_tensor(flat->model, part->name)->offset);
        at += elements_of(part);
        n += elements_of(part);
    }
    assert_int_equal(elements_in(flat, begin, begin + gradient.count), n);
}

static void a_hook_sees_whole_rows_of_cut_tensors(void **state)
{
    (void)state;
    for (int group = 1; group <= fsdp_test_size(); group++) {
        fsdp_model_options options = FSDP_MODEL_OPTIONS_DEFAULT;
        small_model        m;

        if (fsdp_test_size() % group != 0) {
            continue;
        }
        options.strategy   = FSDP_HYBRID_SHARD;
        options.group_size = group;
        small_model_build(&m, MPI_COMM_WORLD, NULL, &options);
        assert_int_equal(FSDP_OK, fsdp_model_commit(m.model));
        for (fsdpi_flat *flat = m.model->flats; flat != NULL; flat = flat->next) {
            check_flat(flat);
        }
        small_model_close(&m);
    }
}

int main(int argc, char **argv)
{
    static const struct CMUnitTest tests[] = {cmocka_unit_test(a_hook_sees_whole_rows_of_cut_tensors)};

    return fsdp_test_main(argc, argv, tests, NULL, NULL);
}
