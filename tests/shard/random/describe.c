/* Words for a random model. */
#include <inttypes.h>

#include "tests/shard/random/random_model.h"

const char *feature_text(feature which)
{
    static const char *const texts[] = {
#define FEATURE_TEXT(name, text) text,
        FEATURE_LIST(FEATURE_TEXT)
#undef FEATURE_TEXT
    };

    return which < N_FEATURES ? texts[which] : "unknown";
}

static void describe_tensor(FILE *out, const random_model *m, size_t t)
{
    const planned_tensor *tensor = &m->tensors[t];

    (void)fprintf(out, "    %s (", tensor->name);
    for (size_t k = 0; k < tensor->n_dims; k++) {
        (void)fprintf(out, "%s%zu", k > 0 ? " x " : "", tensor->shape[k]);
    }
    if (tensor->owner != t) {
        (void)fprintf(out, "), tied to %s\n", m->tensors[tensor->owner].name);
        return;
    }
    (void)fprintf(out, "), %s%s%s%s%s\n", fsdp_dtype_name(tensor->dtype),
                  (tensor->flags & FSDP_TENSOR_FROZEN) != 0 ? ", frozen" : "",
                  (tensor->flags & FSDP_TENSOR_IGNORED) != 0 ? ", ignored" : "",
                  (tensor->flags & FSDP_TENSOR_KEEP_DTYPE) != 0 ? ", keeps its type" : "",
                  (tensor->flags & FSDP_TENSOR_NO_WEIGHT_DECAY) != 0 ? ", no decay" : "");
}

static void describe_segment(FILE *out, const random_model *m, const planned_segment *s)
{
    static const char *const  hooks[] = {"none", "custom", "bf16", "f16", "int8", "PowerSGD"};
    const fsdp_config        *c       = &s->config;
    const fsdp_model_options *o       = &s->options;

    (void)fprintf(out,
                  "  on %d ranks, FSDP_NODE_SIZE=%d: %s, group_size %d, parameters %s, gradients %s, divisor %g, "
                  "unused %d, kept %d%s%s, hook %s\n",
                  s->size, c->node_size, fsdp_strategy_name(o->strategy), o->group_size,
                  fsdp_dtype_name(o->param_dtype), fsdp_dtype_name(o->reduce_dtype), o->gradient_divisor,
                  (int)o->unused, o->kept_units, o->quantized_params ? ", quantized" : "",
                  o->local_gradients ? ", local gradients" : "", hooks[s->hook]);
    for (size_t k = 0; k < m->n_optimizers; k++) {
        (void)fprintf(out, "    granularity of optimizer %zu: %zu\n", k, s->granularities[k]);
    }
    (void)fprintf(out,
                  "    prefetch %d, views %d, bucket %" PRId64 ", staging %" PRId64 ", messages %" PRId64
                  ", chunks %" PRId64 ", verify %d, isa %d, progress %d, cma %d\n",
                  c->prefetch, c->views_in_flight, c->bucket_bytes, c->staging_bytes, c->message_bytes, c->chunk_bytes,
                  c->verify, c->isa, c->progress, c->cma);
    (void)fprintf(out, "    whole below %" PRId64 " bytes%s", c->small_bytes, o->keep_on_node ? ", kept on nodes" : "");
    for (size_t u = 0; u < m->n_units; u++) {
        if (s->strategies[u] >= 0) {
            (void)fprintf(out, ", %s %s", m->units[u].name, fsdp_strategy_name((fsdp_strategy)s->strategies[u]));
        }
    }
    (void)fprintf(out, "\n    checkpoint in %s, files of %zu bytes%s\n", fsdp_dtype_name(s->checkpoint.dtype),
                  s->checkpoint.file_bytes, s->checkpoint.asynchronous ? ", asynchronous" : "");
}

void describe_op(const random_model *m, const planned_op *op, char *text, size_t size)
{
    static const char *const words[] = {"forget",
                                        "begin_forward",
                                        "end_forward",
                                        "begin_backward",
                                        "end_backward",
                                        "set_sync",
                                        "keep_gathered",
                                        "replay",
                                        "end of replay",
                                        "set_gradient_divisor",
                                        "grad_norm",
                                        "scale_grad",
                                        "zero_grad",
                                        "unscale",
                                        "clip_grad_norm",
                                        "clip_grad_norm_inf",
                                        "clip_grad_value",
                                        "step",
                                        "set_lr",
                                        "set buffers",
                                        "tensor_export",
                                        "tensor_import",
                                        "fail",
                                        "recover"};
    const char              *what =
        op->kind == OP_EXPORT || op->kind == OP_IMPORT ? m->tensors[op->n].name : m->units[op->unit].name;

    (void)snprintf(text, size, "%s %s n=%zu rank=%d %g", words[op->kind], what, op->n, op->root, op->value);
}

static void describe_ops(FILE *out, const random_model *m, const planned_segment *s)
{
    char text[160];

    for (size_t i = 0; i < s->n_ops; i++) {
        describe_op(m, &s->ops[i], text, sizeof text);
        (void)fprintf(out, "      %3zu %s\n", i, text);
    }
}

static void describe_optimizer(FILE *out, const random_model *m, size_t k)
{
    static const char *const      kinds[] = {"SGD", "SGD with momentum", "AdamW", "Adam", "Lion", "custom", "Muon"};
    const fsdp_optimizer_options *o       = &m->optimizers[k].options;

    (void)fprintf(out, "  optimizer %zu of '%s': %s%s, moments %s, lr %g, decay %g%s%s\n", k,
                  m->optimizers[k].pattern != NULL ? m->optimizers[k].pattern : "the rest", kinds[o->kind],
                  m->optimizers[k].custom ? " by a function" : "", fsdp_dtype_name(o->moment_dtype), o->lr,
                  o->weight_decay, o->nesterov ? ", Nesterov" : "", m->scales ? ", with a loss scaler" : "");
}

void describe_random_model(FILE *out, const random_model *m)
{
    for (size_t u = 0; u < m->n_units; u++) {
        (void)fprintf(out, "  unit %s\n", m->units[u].name);
        for (size_t t = m->units[u].first; t < m->units[u].end; t++) {
            describe_tensor(out, m, t);
        }
    }
    for (size_t k = 0; k < m->n_optimizers; k++) {
        describe_optimizer(out, m, k);
    }
    for (size_t g = 0; g < m->n_groups; g++) {
        (void)fprintf(out, "  group '%s' of optimizer %zu: lr %g x %g, decay %g\n", m->groups[g].pattern,
                      m->groups[g].optimizer, m->groups[g].options.lr, m->groups[g].options.lr_scale,
                      m->groups[g].options.weight_decay);
    }
    for (size_t s = 0; s < m->n_segments; s++) {
        describe_segment(out, m, &m->segments[s]);
        describe_ops(out, m, &m->segments[s]);
    }
}
