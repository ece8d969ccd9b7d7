/**
 * @file
 * A call of fsdp_tp_cross_entropy(), and its steps, which the host takes at once and a GPU in the caller's stream.
 */
#ifndef FSDPI_ENTROPY_H
#define FSDPI_ENTROPY_H

#include <stdbool.h>
#include <stddef.h>

#include "fsdp/context.h"
#include "shard/tensor_parallel/arguments.h"

typedef struct fsdpi_entropy {
    fsdp_context  *tp;
    size_t         rows, vocabulary;
    fsdpi_words    mine;
    fsdp_dtype     dtype;
    const int32_t *targets;
    bool           targets_there; /* on the GPU */
    double         scale;
    void          *logits;
    double        *losses;
    double        *largest; /* logit of each row; of `rows`, where logits are */
    double        *sums;    /* of each row two: of exponentials, and the target's logit less the largest one */
    void          *work;    /* what the two above are in */
} fsdpi_entropy;

typedef struct fsdpi_entropy_ops {
    /** Memory for what is found of rows, of which there are some; and the end of it. */
    fsdp_status (*open)(fsdpi_entropy *e);
    fsdp_status (*close)(fsdpi_entropy *e);

    /** `largest`, of the columns that this rank has. */
    fsdp_status (*find_largest)(fsdpi_entropy *e);

    /** Logits become exponentials, with `largest` of all ranks; and `sums`, of these columns. */
    fsdp_status (*exponentiate)(fsdpi_entropy *e);

    /** Exponentials become gradients: scale (exponential / sum - 1 at the target), with `sums` of all ranks; and losses. */
    fsdp_status (*finish)(fsdpi_entropy *e);
} fsdpi_entropy_ops;

extern const fsdpi_entropy_ops fsdpi_entropy_on_host, fsdpi_entropy_on_device;

#endif
