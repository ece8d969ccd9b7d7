#!/usr/bin/env bash
# What fsdp-topo writes for other programs is JSON that says the same as the text, and SVG, for every node there is.
#
#   check_topo_files.sh PROGRAM FOLDER_OF_NODES
#
# Exits with 77 if there is no python3 or no node in the folder.
set -euo pipefail

# shellcheck source=tests/support/check.sh
. "$(dirname "$0")/../../support/check.sh"

program=$1 nodes=$2
command -v python3 >/dev/null || skip "no python3"
compgen -G "$nodes/*.xml" >/dev/null || skip "no recorded node in $nodes"

cat >"$folder/check.py" <<'PYTHON'
import json, os, re, sys, traceback, xml.dom.minidom

def members(mask):
    found = set()
    for part in filter(None, mask.split(",")):
        first, _, last = part.partition("-")
        found |= set(range(int(first), int(last or first) + 1))
    return found

def list_of(numbers):
    runs = []
    for n in sorted(numbers):
        runs[-1:] = [(runs[-1][0], n)] if runs and runs[-1][1] == n - 1 else runs[-1:] + [(n, n)]
    return ",".join("%d" % a if a == b else "%d-%d" % (a, b) for a, b in runs)

def check(folder, ranks):
    with open(folder + "/json") as file:
        document = json.load(file)
    text = open(folder + "/text").read()
    node, = document["nodes"]
    table = text.split(" as planned\n")[1].split("\nproblems")[0]
    cores, gpus, threads = node["cores"], node["gpus"], set()
    for part in node["threads"].split(","):
        first, _, last = part.partition("-")
        threads |= set(range(int(first), int(last or first) + 1))

    assert {t for c in cores for t in members(c["threads"])} == threads, "cores and threads"
    assert re.search(r"\b%d cores?, %d hardware threads?, %d GPUs?," % (len(cores), len(threads), len(gpus)), text), "counts"
    assert text.startswith(node["verdict"] + "\n")
    assert len(node["ranks"]) == ranks and len(node["sources"]) == 7
    for rank in node["ranks"]:
        plan = rank["plan"]
        assert "real" not in rank
        assert members(plan["threads"]) and members(plan["threads"]) <= members(rank["launcher_threads"]) <= threads
        assert plan["gpu"] is None or gpus[plan["gpu"]]["address"] == plan["address"]
        line, = re.findall(r"^ +%d  .*$" % rank["rank"], table, re.M)
        assert ("GPU %s %s" % (plan["gpu"], plan["address"]) if plan["gpu"] is not None else "none ") in line, line
        assert plan["threads"] in line.split() or "..." in line, line
        for problem in plan["problems"]:
            assert problem in line, line

    svg = xml.dom.minidom.parse(folder + "/svg").documentElement
    assert svg.tagName == "svg" and float(svg.getAttribute("width")) > 100
    words = [t.firstChild.data for t in svg.getElementsByTagName("text") if t.firstChild]
    numbers = sorted(int(w) for w in words if w.isdigit())
    assert numbers == sorted(threads), "every hardware thread is drawn once"
    for memory in node["memories"]:
        assert any(memory["kind"] + " " in w or memory["kind"] + "," in w for w in words), memory["kind"]
    assert sum(kind["cores"] for kind in node["core_kinds"]) in (0, len(cores))
    for kind in node["core_kinds"]:
        assert "around a core of the kind %s: %d" % (kind["name"], kind["cores"]) in words, kind["name"]

    for number, gpu in enumerate(gpus):
        assert any(w.startswith(gpu["address"]) for w in words), "GPU " + gpu["address"]
        model = gpu["name"] if len(gpu["name"]) <= 20 else gpu["name"][:17] + "..."
        assert not model or model in words, model
        owners = [rank["rank"] for rank in node["ranks"] if rank["plan"]["gpu"] == number]
        said = ("rank " if len(owners) == 1 else "ranks ") + list_of(owners)
        assert not owners or said in words or said[:8] in [w[:8] for w in words if w.endswith("...")], said
    for card in node["network_cards"]:
        assert card["name"] in words, card["name"]
    for rank in range(ranks):
        assert "rank %d" % rank in words, "rank %d in the legend" % rank

wrong = 0
for name in sorted(os.listdir(sys.argv[1])):
    try:
        check(os.path.join(sys.argv[1], name), int(name.rpartition("-")[2]))
    except Exception:
        traceback.print_exc()
        print("FAILED with the node, and the number of ranks, of " + name)
        wrong += 1
sys.exit(wrong != 0)
PYTHON

mkdir "$folder/made"
for xml in "$nodes"/*.xml; do
    for ranks in 1 5 8; do
        made=$folder/made/$(basename "$xml" .xml)-$ranks
        mkdir "$made"
        "$program" --input "$xml" --ranks "$ranks" --svg "$made/svg" >"$made/text"
        "$program" --input "$xml" --ranks "$ranks" --json >"$made/json"
    done
done
python3 "$folder/check.py" "$folder/made"
