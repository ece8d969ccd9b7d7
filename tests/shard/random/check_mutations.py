#!/usr/bin/env python3
"""Whether random models find mistakes: each mutation below changes one line of a copy of the sources, which is built,
and one of the first 40 models must then tell it from the reference.

  check_mutations.py SOURCES [--work FOLDER] [--only WORD] [--ranks 2,3,4] [-- CMAKE OPTION...]

FOLDER is where the copy and its build are made, and stay; without it they are removed. Prints after how many models
each mutation was found. A mutation whose line is no longer in the sources is an error: write it anew. Exits with 1 if
anything is wrong.
"""
import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile

# file, a part of one line, what becomes of it, what that is
MUTATIONS = [
    ("shard/state/factor.h", "(double)model->ctx->size / divisor : 1.0;", "(double)model->ctx->size / divisor : 0.5;",
     "a mean of half the size"),
    ("shard/schedule/reduction.c", "fsdpi_compute_divide(model, part, dtype, (size_t)model->ctx->size, n);",
     "fsdpi_compute_divide(model, part, dtype, (size_t)model->shards->size, n);",
     "sums over groups divided by a group's ranks"),
    ("shard/schedule/reduction.c", "    if (stage_op(model) == FSDP_SUM && model->hook == NULL) {",
     "    if (stage_op(model) == FSDP_SUM) {", "means of a hook divided once more"),
    ("shard/schedule/reduction.c", "!flat->has_gradient && flat->reducing == 0;", "flat->reducing == 0;",
     "a second micro-batch that overwrites the first"),
    ("shard/schedule/reduction.c", "accumulate(model, flat->local, false, member->gradient_view, dtype, 1.0,",
     "accumulate(model, flat->local, true, member->gradient_view, dtype, 1.0,", "gradients of local passes dropped"),
    ("shard/schedule/reduction.c", "        if (take) {", "        if (take && bucket->next == NULL) {", "a dropped bucket"),
    ("shard/schedule/reduction.c", "    fsdpi_compute_clear(model, member->gradient_view, member->flat->layout.padded",
     "    fsdpi_compute_clear(model, member->gradient_view, 0 * member->flat->layout.padded",
     "views that do not begin as zeros"),
    ("shard/schedule/reduction.c", "        move_to_end(member);", "        (void)move_to_end;",
     "the order of a shared tensor's passes"),
    ("collectives/reach/pieces.c", "ctx->operands[p] = peer + begin * width;",
     "ctx->operands[ctx->nodes.size - 1 - p] = peer + begin * width;", "operands in the opposite order, large"),
    ("collectives/blocks/inline.c", "ctx->operands[p]          = data + begin;",
     "ctx->operands[ctx->nodes.size - 1 - p] = data + begin;", "operands in the opposite order, inline"),
    ("collectives/arguments/slices.c", "return (fsdpi_slice){.begin = count - left, .count = left < part ? left : part};",
     "return (fsdpi_slice){.begin = count - left, .count = left < part ? left : part - (part > 1)};",
     "a slice that is one short"),
    ("kernels/host/half.h", "(bits + 0x7fffu + (bits >> 16 & 1u))", "(bits + 0x8000u)", "bf16 with ties away from zero"),
    ("shard/schedule/reduction.c", "bucket_offset + fsdpi_held_begin(flat),",
     "bucket_offset + fsdpi_held_begin(flat) + 1,", "a rank's part one element further on"),
    ("shard/schedule/gather.c", "part, view->memory, fsdpi_held_elements(flat),", "part, view->memory, flat->layout.shard,",
     "one slice gathered where a rank holds several"),
    ("shard/schedule/grad_norm.c", "factor = max_norm / (norm + 1e-6);", "factor = max_norm / norm;", "clipping without 1e-6"),
    ("shard/schedule/grad_norm.c", "if (isfinite(norm) && factor < 1.0) {", "if (factor < 1.0) {",
     "clipping by a norm that is not finite"),
    ("shard/schedule/reduction.c", "accumulate(model, flat->gradient, false, own_part(member), dtype, 1.0, n);",
     "accumulate(model, flat->gradient, true, own_part(member), dtype, 1.0, n);", "what was left in the group dropped"),
    ("shard/schedule/reduction.c", "fsdpi_compute_accumulate(flat->model, flat->gradient, !flat->has_partial, own_part(member),",
     "fsdpi_compute_accumulate(flat->model, flat->gradient, true, own_part(member),",
     "passes within the group that overwrite each other"),
    ("shard/schedule/divisor.c", "fsdpi_factor_for(model, model->step_divisor) /", "fsdpi_factor_for(model, model->step_divisor) *",
     "a divisor of the step beside that of the options"),
    ("shard/optimizer/optimizer_host.c", "if (flat->has_gradient && fsdpi_updates(optimizer, flat)) {",
     "if (fsdpi_updates(optimizer, flat)) {", "unused parameters that are updated"),
    ("shard/schedule/replay.c", "model->syncs      = (event & SYNCS) != 0;", "model->syncs      = true;",
     "a repeated pass that reduces where the others do not"),
    ("shard/schedule/tensor_norms.c", "from = first > begin ? first : begin,", "from = begin,",
     "a tensor's norm with the one before it"),
    ("shard/optimizer/optimizer_runs.c", "(double)(optimizer->steps + 1);", "(double)(optimizer->steps + 2);",
     "bias corrections one step ahead"),
    ("shard/optimizer/optimizer_runs.c", "last->group == next->group && last->decays == next->decays",
     "last->group == next->group", "weight decay of the tensor before"),
    ("shard/optimizer/muon.c", "*g = o->nesterov != 0 ? (float)fma(mu, (double)*b, (double)*g) : *b;",
     "*g = o->nesterov != 0 ? (float)fma(mu, (double)*b, (double)*b) : *b;", "Muon without the gradient itself"),
    ("shard/state/dynamic_blocks.c", "(step * 256 + place + 1)", "(step * 256 + place + 2)",
     "second moments rounded by the next one's chance"),
    ("shard/optimizer/optimizer.c", "if (fsdpi_updates(optimizer, flat) || fsdpi_optimizer_of(flat) == NULL) {",
     "if (true) {", "a step that clears the gradients of other optimizers"),
    ("shard/schedule/gather.c", "        flat->is_kept = false;", "        flat->is_kept = flat->is_kept && true;",
     "nodes that keep the parameters of the step before"),
]


def read_options():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sources")
    parser.add_argument("--work", help="folder for the copy")
    parser.add_argument("--only", default="", help="mutations with this word in their description")
    parser.add_argument("--ranks", default="2,3,4")
    parser.add_argument("--parallel", default="2", help="compilers at a time")
    end = sys.argv.index("--") if "--" in sys.argv else len(sys.argv)
    options = parser.parse_args(sys.argv[1:end])
    options.cmake = sys.argv[end + 1:]
    return options


def copy_tree(sources, tree):
    skipped = {"build", ".git"}
    for name in sorted(os.listdir(sources)):
        source, target = os.path.join(sources, name), os.path.join(tree, name)
        if name in skipped:
            continue
        if os.path.isdir(source):
            shutil.copytree(source, target, dirs_exist_ok=True)
        else:
            shutil.copy2(source, target)


def run(*command):
    return subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace")


def must(*command):
    result = run(*command)
    if result.returncode != 0:
        sys.exit("%s failed:\n%s" % (" ".join(command), result.stdout[-3000:]))


def build(work, options):
    must("cmake", "--build", os.path.join(work, "build"), "--parallel", options.parallel, "--target",
         "test_shard_random_models")


def found_after(work, ranks):
    """How many models it took; 0 if a model ended the program; None if all agree."""
    result = run("ctest", "--test-dir", os.path.join(work, "build"), "--output-on-failure", "-R",
                 r"^shard\.random_models\.n%d$" % ranks)
    done = re.search(r"(\d+) of (\d+) models are as the reference", result.stdout)
    if result.returncode == 0 and "100% tests passed" in result.stdout:
        return None
    return int(done.group(1)) + 1 if done else 0


def try_mutation(work, options, mutation):
    file, old, new, what = mutation
    path = os.path.join(work, "tree", file)
    with open(path, encoding="utf-8") as source:
        text = source.read()
    if old not in text:
        print("%-55s %s no longer has: %s" % (what, file, old))
        return False
    with open(path, "w", encoding="utf-8") as source:
        source.write(text.replace(old, new, 1))
    found = []
    try:
        build(work, options)
        for ranks in map(int, options.ranks.split(",")):
            models = found_after(work, ranks)
            if models is not None:
                found.append("ended on %d ranks" % ranks if models == 0 else "model %d on %d ranks" % (models, ranks))
    finally:
        with open(path, "w", encoding="utf-8") as source:
            source.write(text)
    print("%-55s %s" % (what, ", ".join(found) or "NOT FOUND"), flush=True)
    return bool(found)


def check(options, work):
    copy_tree(options.sources, os.path.join(work, "tree"))
    for file in {mutation[0] for mutation in MUTATIONS}:  # whose objects may be of a mutation
        os.utime(os.path.join(work, "tree", file))
    must("cmake", "-S", os.path.join(work, "tree"), "-B", os.path.join(work, "build"),
         "-DCMAKE_BUILD_TYPE=RelWithDebInfo", "-DFSDP_TEST_SOURCES=OFF", *options.cmake)
    build(work, options)
    for ranks in map(int, options.ranks.split(",")):
        if found_after(work, ranks) is not None:
            sys.exit("the models differ on %d ranks before anything is changed" % ranks)
    chosen = [m for m in MUTATIONS if options.only in m[3]]
    return all([try_mutation(work, options, mutation) for mutation in chosen])


def main():
    options = read_options()
    if options.work is not None:
        os.makedirs(options.work, exist_ok=True)
        return check(options, options.work)
    with tempfile.TemporaryDirectory() as work:
        return check(options, work)


if __name__ == "__main__":
    sys.exit(0 if main() else 1)
