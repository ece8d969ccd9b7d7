#!/usr/bin/env bash
# 03_gpt --weights: a file with GPT-2's published names and shapes, made here by plain Python, is what the model then holds, bit by
# bit, and gives the loss that Python computes. A file that does not fit is refused, with all that does not fit.
#
#   check_gpt_weights.sh PROGRAM MPIEXEC [FLAG]...
set -euo pipefail

# shellcheck source=tests/support/check.sh
. "$(dirname "$0")/../support/check.sh"

program=$1
shift
launch=("$@")
if ! command -v python3 >/dev/null; then
    skip "python3 is not installed"
fi

# With one byte over and over as the text, every window is the same.
python3 - "$folder" <<'PYTHON'
import json, math, random, struct, sys

folder, L, H, C, T, V = sys.argv[1], 2, 2, 8, 6, 256
open(folder + "/text", "w").write("a" * 4000)
random.seed(5)
shapes = {"wte.weight": [V, C], "wpe.weight": [T, C], "ln_f.weight": [C], "ln_f.bias": [C]}
for l in range(L):
    for name, shape in {"ln_1.weight": [C], "ln_1.bias": [C], "attn.c_attn.weight": [C, 3 * C], "attn.c_attn.bias": [3 * C],
                        "attn.c_proj.weight": [C, C], "attn.c_proj.bias": [C], "ln_2.weight": [C], "ln_2.bias": [C],
                        "mlp.c_fc.weight": [C, 4 * C], "mlp.c_fc.bias": [4 * C], "mlp.c_proj.weight": [4 * C, C],
                        "mlp.c_proj.bias": [C]}.items():
        shapes["h.%d.%s" % (l, name)] = shape
f32 = lambda x: struct.unpack("<f", struct.pack("<f", x))[0]
values = {n: [f32(random.gauss(0, 0.5)) for _ in range(math.prod(s))] for n, s in shapes.items()}

def write(path, tensors):
    header, data = {"__metadata__": {"format": "pt"}}, b""
    for name, (shape, numbers) in tensors.items():
        begin = len(data)
        data += struct.pack("<%df" % len(numbers), *numbers)
        header[name] = {"dtype": "F32", "shape": shape, "data_offsets": [begin, len(data)]}
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    open(path, "wb").write(struct.pack("<Q", len(text)) + text + data)

good = {n: (shapes[n], values[n]) for n in shapes}
write(folder + "/plain.safetensors", good)
later = {"transformer." + n: t for n, t in good.items()}
later["lm_head.weight"] = good["wte.weight"]
for l in range(L):
    later["transformer.h.%d.attn.bias" % l] = ([1, 1, T, T], [1.0] * (T * T))
    later["transformer.h.%d.attn.masked_bias" % l] = ([1], [-1e4])
write(folder + "/later.safetensors", later)
bad = dict(good)
bad["wte.weight"] = ([50257, C], [0.0] * (50257 * C))
bad["h.0.ln_1.weights"] = bad.pop("h.0.ln_1.weight")
bad["h.1.mlp.c_fc.weight"] = ([4 * C, C], values["h.1.mlp.c_fc.weight"])
write(folder + "/bad.safetensors", bad)

def norm(x, w, b):
    mean = sum(x) / C
    scale = 1 / math.sqrt(sum((v - mean) ** 2 for v in x) / C + 1e-5)
    return [(v - mean) * scale * w[i] + b[i] for i, v in enumerate(x)]
def linear(x, name):
    w, b = values[name + ".weight"], values[name + ".bias"]
    return [b[j] + sum(x[i] * w[i * len(b) + j] for i in range(len(x))) for j in range(len(b))]
def soft(x):
    e = [math.exp(v - max(x)) for v in x]
    return [v / sum(e) for v in e]
gelu = lambda v: 0.5 * v * (1 + math.tanh(math.sqrt(2 / math.pi) * (v + 0.044715 * v ** 3)))
add = lambda a, b: [x + y for x, y in zip(a, b)]
a = ord("a")
stream = [[values["wte.weight"][a * C + i] + values["wpe.weight"][t * C + i] for i in range(C)] for t in range(T)]
for l in range(L):
    p = "h.%d." % l
    qkv = [linear(norm(x, values[p + "ln_1.weight"], values[p + "ln_1.bias"]), p + "attn.c_attn") for x in stream]
    D, heads = C // H, []
    for t in range(T):
        out = []
        for h in range(H):
            q = qkv[t][h * D:(h + 1) * D]
            w = soft([sum(x * y for x, y in zip(q, qkv[s][C + h * D:C + (h + 1) * D])) / math.sqrt(D) for s in range(t + 1)])
            out += [sum(w[s] * qkv[s][2 * C + h * D + i] for s in range(t + 1)) for i in range(D)]
        heads.append(out)
    stream = [add(x, linear(y, p + "attn.c_proj")) for x, y in zip(stream, heads)]
    stream = [add(x, linear([gelu(v) for v in linear(norm(x, values[p + "ln_2.weight"], values[p + "ln_2.bias"]),
                                                     p + "mlp.c_fc")], p + "mlp.c_proj")) for x in stream]
loss = 0
for x in stream:
    y = norm(x, values["ln_f.weight"], values["ln_f.bias"])
    loss -= math.log(soft([sum(y[i] * values["wte.weight"][v * C + i] for i in range(C)) for v in range(V)])[a]) / T
open(folder + "/loss", "w").write(repr(loss))
PYTHON

run() {
    timeout "$((120 * ${TEST_TIME_FACTOR:-1}))" "${launch[@]}" "$program" --data "$folder/text" --layers 2 --heads 2 --width 8 --context 6 --batch 6 --steps 1 \
        --lr 0 --val-batches 1 --sample 0 --progress off --exact "$@" >"$folder/out" 2>&1 </dev/null
}

for file in plain later; do
    run --weights "$folder/$file.safetensors" --checkpoint "$folder/$file" || fail "$file.safetensors was not loaded"
    python3 - "$folder" "$file" "$(sed -nE 's/^exact step 1 loss .* = ([0-9.]+).*/\1/p' "$folder/out")" <<'PYTHON' ||
import json, struct, sys

folder, name, loss = sys.argv[1], sys.argv[2], float(sys.argv[3])
def read(path):
    file = open(path, "rb").read()
    length = struct.unpack("<Q", file[:8])[0]
    header = json.loads(file[8:8 + length])
    return {n: (t["shape"], file[8 + length + t["data_offsets"][0]:8 + length + t["data_offsets"][1]])
            for n, t in header.items() if n != "__metadata__"}
expected = float(open(folder + "/loss").read())
assert abs(loss / expected - 1) < 1e-5, (loss, expected)
assert read(folder + "/plain.safetensors") == read(folder + "/" + name + "/step-000000001/model.safetensors")
print(name, "loss", loss, "Python's", expected)
PYTHON
        fail "what was loaded is not what is in $file.safetensors"
done

if run --weights "$folder/bad.safetensors"; then
    fail "a file that does not fit was loaded"
fi
for line in "tensor 'wte.weight' is F32 \[50257, 8\] in the file, and \[256, 8\] in the model" \
    "tensor 'h.1.mlp.c_fc.weight' is F32 \[32, 8\] in the file, and \[8, 32\] in the model" \
    "tensor 'h.0.ln_1.weight' is missing in the file" "tensor 'h.0.ln_1.weights' is in the file but not in the model" \
    "1 missing, 1 extra, 2 of another shape or type"; do
    grep -q "$line" "$folder/out" || fail "it does not say: $line"
done
