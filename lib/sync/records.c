#include "lib/sync/records.h"

static fsdpi_record_head *record_at(const fsdpi_records *records, size_t offset)
{
    return (fsdpi_record_head *)(void *)(records->area + offset);
}

int fsdpi_rounds(int nodes)
{
    int rounds = 0;

    for (int have = 1; have<nodes; have = have> nodes / 2 ? nodes : 2 * have) {
        rounds++;
    }
    return rounds;
}

fsdpi_round fsdpi_round_of(int nodes, int mine, int have)
{
    const int missing = nodes - have;

    return (fsdpi_round){.to      = (mine + missing) % nodes,
                         .from    = mine < missing ? mine + have : mine - missing,
                         .records = have < missing ? have : missing};
}

fsdpi_record_head *fsdpi_records_begin(fsdpi_records *records, unsigned char *area, int nodes, int mine)
{
    const int rounds = fsdpi_rounds(nodes);

    *records      = (fsdpi_records){.nodes = nodes, .mine = mine, .have = 1};
    records->area = area;
    records->last = rounds > 0 ? nodes - (1 << (rounds - 1)) : 0;
    return record_at(records, 0);
}

/* Goes on over the records that have come. */
static void look(fsdpi_records *records)
{
    for (; records->seen < records->have; records->seen++) {
        records->part = records->seen == records->last ? records->end : records->part;
        records->end += fsdpi_record_bytes(record_at(records, records->end));
    }
}

size_t fsdpi_records_leaving(fsdpi_records *records)
{
    const bool carries = fsdpi_carries(&record_at(records, 0)->all);

    if (carries || records->seen == 0) {
        look(records);
    }
    if (!carries) {
        return sizeof(fsdpi_record_head);
    }
    return fsdpi_round_of(records->nodes, records->mine, records->have).records == records->have ? records->end
                                                                                                 : records->part;
}

void fsdpi_records_arrived(fsdpi_records *records)
{
    fsdpi_join(&record_at(records, 0)->all, &record_at(records, records->end)->all);
    records->have += fsdpi_round_of(records->nodes, records->mine, records->have).records;
}
