#include "tools/topo/text/launch.h"

#include <string.h>

#include "tools/topo/base/words.h"

#define AMD    0x1002
#define NVIDIA 0x10de

/* Which GPU of NVIDIA this is, in the order of PCI addresses. */
static int count_nvidia_before(const fsdp_node *node, int gpu)
{
    int n = 0;

    for (int i = 0; i < gpu; i++) {
        n += node->gpus[i].vendor == NVIDIA;
    }
    return n;
}

/* As KFD of Linux has it in location_id: bus, device and function. */
static void write_location(FILE *file, const fsdp_gpu *gpu)
{
    unsigned domain = 0, bus = 0, device = 0, function = 0;

    (void)sscanf(gpu->address, "%x:%x:%x.%x", &domain, &bus, &device, &function);
    (void)fprintf(file, " gpu=%s domain=%u location=%u part=%d", gpu->address, domain,
                  bus << 8 | device << 3 | function, gpu->ordinal);
}

static void write_case(FILE *file, const fsdp_node *node, size_t local_rank, const fsdp_place *place)
{
    char threads[4096];

    fsdp_mask_text(&place->threads, threads, sizeof threads);
    (void)fprintf(file, "%zu) threads=%s", local_rank, threads);
    if (place->gpu >= 0 && node->gpus[place->gpu].vendor == AMD) {
        write_location(file, &node->gpus[place->gpu]);
    } else if (place->gpu >= 0 && node->gpus[place->gpu].vendor == NVIDIA) {
        (void)fprintf(file, " cuda=%d", count_nvidia_before(node, place->gpu));
    }
    (void)fputs(" ;;\n", file);
}

static const char head[] =
    "#!/bin/sh\n"
    "# Made by fsdp-topo --launch: gives each rank of a node the cores and the GPU of the plan.\n"
    "#   LAUNCHER [OPTION]... THIS PROGRAM [ARGUMENT]...\n"
    "local_rank=${OMPI_COMM_WORLD_LOCAL_RANK:-${MPI_LOCALRANKID:-${PALS_LOCAL_RANKID:-${SLURM_LOCALID:-}}}}\n"
    "gpu='' cuda=''\n"
    "case $local_rank in\n";

static const char amd[] =
    "if [ -n \"$gpu\" ]; then\n"
    "    # ROCR_VISIBLE_DEVICES counts the GPUs among the nodes of KFD; the plan knows them by PCI address.\n"
    "    kfd=/sys/class/kfd/kfd/topology/nodes\n"
    "    number=$(ls \"$kfd\" 2>/dev/null | sort -n | while read -r node; do cat \"$kfd/$node/properties\" "
    "2>/dev/null\n"
    "        echo end; done | awk -v domain=\"$domain\" -v location=\"$location\" -v part=\"$part\" '\n"
    "        $1 == \"simd_count\" { simds = $2 }\n"
    "        $1 == \"location_id\" { at = $2 % 65536 }\n"
    "        $1 == \"domain\" { of = $2 }\n"
    "        $1 == \"end\" && simds > 0 { if (at == location && of == domain && part-- == 0) { print gpus + 0 }; "
    "gpus++ }\n"
    "        $1 == \"end\" { simds = 0; at = -1; of = 0 }')\n"
    "    if [ -z \"$number\" ]; then\n"
    "        echo \"$0: GPU $gpu is not in $kfd; make the plan on this node, or give the job all of its GPUs\" >&2\n"
    "        exit 1\n"
    "    fi\n"
    "    unset HIP_VISIBLE_DEVICES CUDA_VISIBLE_DEVICES GPU_DEVICE_ORDINAL # they would count among what is left\n"
    "    export ROCR_VISIBLE_DEVICES=\"$number\"\n"
    "fi\n";

static const char nvidia[] = "if [ -n \"$cuda\" ]; then\n"
                             "    export CUDA_DEVICE_ORDER=PCI_BUS_ID CUDA_VISIBLE_DEVICES=\"$cuda\"\n"
                             "fi\n";

static int uses_vendor(const topo_report *report, int vendor)
{
    for (size_t i = 0; i < report->n; i++) {
        if (report->plan[i].gpu >= 0 && report->node->gpus[report->plan[i].gpu].vendor == vendor) {
            return 1;
        }
    }
    return 0;
}

void topo_launch_wrapper(FILE *file, const topo_report *report)
{
    (void)fputs(head, file);
    for (size_t i = 0; i < report->n; i++) {
        write_case(file, report->node, i, &report->plan[i]);
    }
    (void)fprintf(file,
                  "*) echo \"$0: local rank '$local_rank' is not in the plan; start it with a launcher, at most %s per "
                  "node\" >&2\n   exit 1 ;;\nesac\n",
                  topo_counted(report->n, "rank").text);
    (void)fputs(uses_vendor(report, AMD) ? amd : "", file);
    (void)fputs(uses_vendor(report, NVIDIA) ? nvidia : "", file);
    (void)fputs("exec taskset -c \"$threads\" \"$@\"\n", file);
}

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

static void write_srun(FILE *file, const topo_report *report, int nodes, const char *wrapper)
{
    (void)fprintf(file, "# Slurm, with all of each node allocated\nsrun --nodes=%d --ntasks-per-node=%zu ", nodes,
                  report->n);
    (void)fprintf(file, "--distribution=block --threads-per-core=%d ", threads_per_core(report->node));
    if (uses_vendor(report, AMD) || uses_vendor(report, NVIDIA)) {
        (void)fprintf(file, "--gpus-per-node=%zu --gpu-bind=none ", report->node->n_gpus);
    }
    (void)fputs("--cpu-bind=mask_cpu:", file);
    for (size_t i = 0; i < report->n; i++) {
        (void)fputs(i ? "," : "", file);
        write_hex(file, &report->plan[i].threads);
    }
    (void)fprintf(file, " %s PROGRAM\n", wrapper);
}

static void write_mpirun(FILE *file, const topo_report *report, int nodes, const char *wrapper)
{
    const size_t all = report->n * (size_t)nodes;

#ifdef OMPI_MAJOR_VERSION
    const char *crowded = report->n > report->node->n_cores ? " --oversubscribe" : "";

    (void)fprintf(file, "# Open MPI\nmpirun -n %zu --map-by ppr:%zu:node%s --bind-to none %s PROGRAM\n", all, report->n,
                  crowded, wrapper);
#else
    (void)fprintf(file, "# MPICH\nmpiexec -n %zu -ppn %zu -bind-to none %s PROGRAM\n", all, report->n, wrapper);
#endif
}

static void write_marks(FILE *file, const topo_report *report)
{
    for (size_t i = 0; i < report->n; i++) {
        for (unsigned left = report->plan[i].deviations, bit = 1; left; bit <<= 1) {
            if (left & bit) {
                (void)fprintf(file, "# rank %zu of a node: %s: %s\n", i, fsdp_deviation_name((fsdp_deviation)bit),
                              fsdp_deviation_text((fsdp_deviation)bit));
                left &= ~bit;
            }
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
        topo_launch_wrapper(file, report);
        (void)fputs("END_OF_WRAPPER\nchmod +x fsdp-launch.sh\n\n", file);
    }
    write_mpirun(file, report, nodes, path);
    (void)fputc('\n', file);
    write_srun(file, report, nodes, path);
}
