#include "tools/topo/text/wrapper.h"

#include "tools/topo/base/words.h"

/* As KFD of Linux has it in location_id: bus, device and function. */
static void write_amd(FILE *file, const fsdp_gpu *gpu)
{
    unsigned domain = 0, bus = 0, device = 0, function = 0;

    (void)sscanf(gpu->address, "%x:%x:%x.%x", &domain, &bus, &device, &function);
    (void)fprintf(file, " amd=%s domain=%u location=%u part=%d", gpu->address, domain,
                  bus << 8 | device << 3 | function, gpu->ordinal);
}

static void write_nvidia(FILE *file, const fsdp_gpu *gpu)
{
    (void)fprintf(file, " nvidia=%s cuda=", gpu->address);
    topo_shell_word(file, gpu->uuid);
}

static void write_case(FILE *file, const fsdp_node *node, size_t local_rank, const fsdp_place *place)
{
    const fsdp_gpu *gpu = place->gpu >= 0 ? &node->gpus[place->gpu] : NULL;
    char            threads[FSDP_MASK_WORDS * 64 * 5];

    fsdp_mask_text(&place->threads, threads, sizeof threads);
    (void)fprintf(file, "%zu) threads=%s", local_rank, threads);
    if (gpu && gpu->vendor == TOPO_AMD) {
        write_amd(file, gpu);
    } else if (gpu && gpu->vendor == TOPO_NVIDIA) {
        write_nvidia(file, gpu);
    }
    (void)fputs(" ;;\n", file);
}

/* A job script of Slurm has SLURM_LOCALID too, whatever is started in it: it comes last. */
static const char head[] =
    "#!/bin/sh\n"
    "# Made by fsdp-topo --launch: gives each rank of a node the cores and the GPU of the plan.\n"
    "#   LAUNCHER [OPTION]... THIS PROGRAM [ARGUMENT]...\n"
    "local_rank=${OMPI_COMM_WORLD_LOCAL_RANK:-${MPI_LOCALRANKID:-${MV2_COMM_WORLD_LOCAL_RANK:-}}}\n"
    "local_rank=${local_rank:-${PALS_LOCAL_RANKID:-${FLUX_TASK_LOCAL_ID:-${SLURM_LOCALID:-}}}}\n"
    "amd='' nvidia=''\n"
    "case $local_rank in\n";

static const char amd[] =
    "if [ -n \"$amd\" ]; then\n"
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
    "        echo \"$0: GPU $amd is not in $kfd; make the plan on this node, or give the job all of its GPUs\" >&2\n"
    "        exit 1\n"
    "    fi\n"
    "    unset HIP_VISIBLE_DEVICES CUDA_VISIBLE_DEVICES GPU_DEVICE_ORDINAL # they would count among what is left\n"
    "    export ROCR_VISIBLE_DEVICES=\"$number\"\n"
    "fi\n";

static const char nvidia[] =
    "if [ -n \"$nvidia\" ]; then\n"
    "    # CUDA's numbers count display cards too. Each node knows the UUID of what it has at the plan's PCI address.\n"
    "    uuid='GPU-[0-9A-Za-z][-0-9A-Za-z]*'\n"
    "    here=$(sed -n \"s/^GPU UUID:[[:space:]]*\\($uuid\\)\\$/\\1/p\" "
    "\"/proc/driver/nvidia/gpus/$nvidia/information\" 2>/dev/null)\n"
    "    [ -n \"$here\" ] || here=$(nvidia-smi -i \"$nvidia\" --query-gpu=uuid --format=csv,noheader 2>/dev/null | "
    "grep -x \"$uuid\")\n"
    "    cuda=${here:-$cuda}\n"
    "    if [ -z \"$cuda\" ]; then\n"
    "        echo \"$0: neither /proc/driver/nvidia nor nvidia-smi knows the GPU $nvidia; make the plan on this node, "
    "or "
    "give the job all of its GPUs\" >&2\n"
    "        exit 1\n"
    "    fi\n"
    "    export CUDA_VISIBLE_DEVICES=\"$cuda\"\n"
    "fi\n";

static const char tail[] =
    "allowed=$(taskset -c \"$threads\" sed -n 's/^Cpus_allowed_list:[[:space:]]*//p' /proc/self/status 2>/dev/null)\n"
    "if [ \"$allowed\" != \"$threads\" ]; then\n"
    "    echo \"$0: of the plan's hardware threads $threads, local rank $local_rank is given ${allowed:-none}; have "
    "the "
    "launcher give it whole nodes\" >&2\n"
    "fi\n"
    "exec taskset -c \"$threads\" \"$@\"\n";

int topo_wrapper_uses(const topo_report *report, int vendor)
{
    for (size_t i = 0; i < report->n; i++) {
        if (report->plan[i].gpu >= 0 && report->node->gpus[report->plan[i].gpu].vendor == vendor) {
            return 1;
        }
    }
    return 0;
}

void topo_wrapper_write(FILE *file, const topo_report *report)
{
    (void)fputs(head, file);
    for (size_t i = 0; i < report->n; i++) {
        write_case(file, report->node, i, &report->plan[i]);
    }
    (void)fprintf(file,
                  "*) echo \"$0: local rank '$local_rank' is not in the plan; start it with a launcher, at most %s per "
                  "node\" >&2\n   exit 1 ;;\nesac\n",
                  topo_counted(report->n, "rank").text);
    (void)fputs(topo_wrapper_uses(report, TOPO_AMD) ? amd : "", file);
    (void)fputs(topo_wrapper_uses(report, TOPO_NVIDIA) ? nvidia : "", file);
    (void)fputs(tail, file);
}
