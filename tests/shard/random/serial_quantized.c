/* Parameters that are gathered as 8-bit integers: 256 elements of a flat parameter share a scale. */
#include <stdlib.h>
#include <string.h>

#include "tests/shard/random/numbers.h"
#include "tests/shard/random/serial_flat.h"

enum { BLOCK = 256 };

bool is_quantized(const serial_model *s, size_t t)
{
    const planned_tensor *owner = &s->m->tensors[s->m->tensors[t].owner];

    return s->segment->options.quantized_params && owner->dtype == FSDP_F32 &&
           (owner->flags & (FSDP_TENSOR_KEEP_DTYPE | FSDP_TENSOR_IGNORED)) == 0;
}

static void gather_flat(serial_model *s, const serial_flat *flat)
{
    float *all = calloc(flat->padded, sizeof *all);

    for (size_t k = 0; all != NULL && k < flat->n; k++) {
        const size_t t = flat->names[k];

        memcpy(all + flat->offsets[k], s->tensors[s->m->tensors[t].owner].master,
               s->m->tensors[t].count * sizeof(float));
    }
    for (size_t begin = 0; all != NULL && begin < flat->padded;
         begin += flat->slice) { /* with which blocks begin anew */
        for (size_t i = 0; i < flat->slice; i += BLOCK) {
            round_to_int8(all + begin + i, flat->slice - i < BLOCK ? flat->slice - i : BLOCK);
        }
    }
    for (size_t k = 0; all != NULL && k < flat->n; k++) {
        const size_t     t     = flat->names[k];
        const fsdp_dtype dtype = type_of_view(s->m, &s->segment->options, t);

        for (size_t i = 0; i < s->m->tensors[t].count; i++) {
            s->tensors[s->m->tensors[t].owner].view[i] = nearest_of(dtype, all[flat->offsets[k] + i]);
        }
    }
    free(all);
}

void serial_gather_quantized(serial_model *s, size_t unit)
{
    for (size_t t = s->m->units[unit].first; t < s->m->units[unit].end; t++) {
        if (is_quantized(s, t)) {
            const serial_flat flat = serial_flat_of(s, t);

            gather_flat(s, &flat);
        }
    }
}
