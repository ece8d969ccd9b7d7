#include "tools/topo/text/launch.h"

#include <string.h>

#include "tools/topo/base/rank_list.h"
#include "tools/topo/base/words.h"
#include "tools/topo/text/wrapper.h"

/* 0xff00000000000000ff */
static void write_hex(FILE *file, const fsdp_mask *mask)
{
    size_t top = FSDP_MASK_WORDS - 1;

    while (top > 0 && mask->word[top] == 0) {
        top--;
    }
    (void)fprintf(file, "0x%llx", (unsigned long long)mask->word[top]);
    while (top-- > 0) {
        (void)fprintf(file, "%016llx", (unsigned long long)mask->word[top]);
    }
}

/* Slurm leaves out the second hardware threads unless it is told. */
static int threads_per_core(const fsdp_node *node)
{
    int most = 1;

    for (size_t i = 0; i < node->n_cores; i++) {
        const int threads = fsdp_mask_count(&node->cores[i].threads);

        most = threads > most ? threads : most;
    }
    return most;
}

/* Hardware threads that some rank may use. */
static size_t count_threads(const topo_report *report)
{
    const fsdp_mask all = topo_report_threads(report);

    return (size_t)fsdp_mask_count(&all);
}

static void write_masks(FILE *file, const topo_report *report)
{
    (void)fputs("--cpu-bind=mask_cpu:", file);
    for (size_t i = 0; i < report->n; i++) {
        (void)fputs(i ? "," : "", file);
        write_hex(file, &report->plan[i].threads);
    }
}

/*
 * A step gets as many hardware threads as its tasks ask for, one each unless told, and srun refuses masks with others in them.
 * Where equal shares leave some over, which ones the step gets is not known: the wrapper binds to what is there of them.
 */
static void write_srun(FILE *file, const topo_report *report, int nodes)
{
    const size_t per_core = (size_t)threads_per_core(report->node), all = count_threads(report);
    const size_t share = all / report->n / per_core * per_core, per_task = share > 0 ? share : 1;

    (void)fputs("\n# Slurm: alone, in a job script, or under salloc.\n"
                "# Add --mpi=pmix for Open MPI, --mpi=pmi2 for MPICH, unless that is the default.\n",
                file);
    if (share * report->n != all) {
        (void)fprintf(file,
                      "# It gives out whole cores in equal shares, %zu of the %s: some ranks get less than the plan.\n",
                      share > 0 ? share * report->n : all, topo_counted(all, "hardware thread").text);
    }
    (void)fprintf(file,
                  "srun --nodes=%d --exclusive --ntasks-per-node=%zu --cpus-per-task=%zu --threads-per-core=%zu%s ",
                  nodes, report->n, per_task, per_core, share > 0 ? "" : " --overcommit");
    if (topo_wrapper_uses(report, TOPO_AMD) || topo_wrapper_uses(report, TOPO_NVIDIA)) {
        (void)fprintf(file, "--gpus-per-node=%zu --gpu-bind=none ", report->node->n_gpus);
    }
    (void)fputs("--distribution=block ", file);
    if (share * report->n == all) {
        write_masks(file, report);
    } else {
        (void)fputs("--cpu-bind=none", file);
    }
}

static void end_line(FILE *file, const char *wrapper)
{
    (void)fputc(' ', file);
    topo_shell_word(file, wrapper);
    (void)fputs(" PROGRAM\n", file);
}

static void write_lines(FILE *file, const topo_report *report, int nodes, const char *wrapper)
{
    const size_t n = report->n, all = n * (size_t)nodes;

    (void)fprintf(file, "# Open MPI\nmpirun -n %zu --map-by ppr:%zu:node%s --bind-to none", all, n,
                  n > report->node->n_cores ? " --oversubscribe" : "");
    end_line(file, wrapper);
    (void)fprintf(file, "\n# MPICH\nmpiexec -n %zu -ppn %zu -bind-to none", all, n);
    end_line(file, wrapper);
    write_srun(file, report, nodes);
    end_line(file, wrapper);
    (void)fprintf(file, "\n# Flux\nflux run --nodes=%d --exclusive --tasks-per-node=%zu ", nodes, n);
    (void)fputs("-o cpu-affinity=off -o gpu-affinity=off -o mpibind=off", file);
    end_line(file, wrapper);
    (void)fprintf(file, "\n# PALS of HPE, under PBS\nmpiexec -n %zu --ppn %zu --cpu-bind none", all, n);
    end_line(file, wrapper);
}

/* Each kind of deviation once. */
static void write_marks(FILE *file, const topo_report *report)
{
    unsigned all = 0;

    for (size_t i = 0; i < report->n; i++) {
        all |= report->plan[i].deviations;
    }
    for (unsigned bit = 1; all; all &= ~bit, bit <<= 1) {
        topo_rank_list list = {0};
        char           who[TOPO_RANK_LIST_BYTES];

        for (size_t i = 0; i < report->n && all & bit; i++) {
            if (report->plan[i].deviations & bit) {
                topo_rank_list_add(&list, (int)i);
            }
        }
        if (list.n > 0) {
            topo_rank_list_text(&list, who, sizeof who);
            (void)fprintf(file, "# %s of a node: %s: %s\n", who, fsdp_deviation_name((fsdp_deviation)bit),
                          fsdp_deviation_text((fsdp_deviation)bit));
        }
    }
}

void topo_launch_write(FILE *file, const topo_report *report, int nodes, const char *wrapper)
{
    char path[4200] = "./fsdp-launch.sh";

    (void)fprintf(file, "# %s per node of %s, by fsdp-topo\n", topo_counted(report->n, "rank").text,
                  report->host[0] ? report->host : "a recorded machine");
    write_marks(file, report);
    if (wrapper) {
        (void)snprintf(path, sizeof path, "%s%s", strchr(wrapper, '/') ? "" : "./", wrapper);
    } else {
        (void)fputs("cat >fsdp-launch.sh <<'END_OF_WRAPPER'\n", file);
        topo_wrapper_write(file, report);
        (void)fputs("END_OF_WRAPPER\nchmod +x fsdp-launch.sh\n\n", file);
    }
    write_lines(file, report, nodes, path);
}
