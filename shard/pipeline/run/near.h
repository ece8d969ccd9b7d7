/** @file The notes that go with messages within a node. Those of a step are numbers of it, so that nothing is cleared between steps. */
#ifndef FSDPI_PIPELINE_NEAR_H
#define FSDPI_PIPELINE_NEAR_H

#include "shard/pipeline/run/pipeline.h"

/** What lies at a place may be read; or, in a spoiled step, must not. */
static inline void fsdpi_near_say_sent(fsdp_pipeline *pipeline, fsdpi_outbox *box, int place)
{
    fsdpi_sent_note *note = &box->notes[box->shelf.micro[place]];

    note->place   = (uint32_t)place;
    note->spoiled = pipeline->spoiled;
    atomic_store_explicit(&note->sent, pipeline->step, memory_order_release);
}

static inline bool fsdpi_near_is_taken(const fsdp_pipeline *pipeline, const fsdpi_outbox *box, int place)
{
    const fsdpi_sent_note *note = &box->notes[box->shelf.micro[place]];

    return atomic_load_explicit(&note->taken, memory_order_acquire) == pipeline->step;
}

/** The note of a micro-batch that has been sent in this step; NULL: it has not. */
static inline fsdpi_sent_note *fsdpi_near_find(const fsdp_pipeline *pipeline, const fsdpi_inbox *box, int micro)
{
    fsdpi_sent_note *note = &box->notes[micro];

    return atomic_load_explicit(&note->sent, memory_order_acquire) == pipeline->step ? note : NULL;
}

static inline void fsdpi_near_say_taken(const fsdp_pipeline *pipeline, fsdpi_sent_note *note)
{
    atomic_store_explicit(&note->taken, pipeline->step, memory_order_release);
}

/** For fsdpi_way::expect: nothing comes before it is looked for. */
static inline fsdp_status fsdpi_near_expect(fsdp_pipeline *pipeline, fsdpi_inbox *box)
{
    (void)pipeline;
    (void)box;
    return FSDP_OK;
}

#endif
