# shellcheck shell=bash
# Files as 04_fashion_mnist reads them. Sourced.

# be32 NUMBER: four bytes, the highest first.
be32() {
    # shellcheck disable=SC2059 # the format is the bytes
    printf "$(printf '\\x%02x\\x%02x\\x%02x\\x%02x' $(($1 >> 24 & 255)) $(($1 >> 16 & 255)) $(($1 >> 8 & 255)) $(($1 & 255)))"
}

# image_file COUNT: an IDX file of 28 x 28 images, whatever bytes the programs of this machine have.
image_file() {
    be32 $((0x803))
    be32 "$1"
    be32 28
    be32 28
    head -c $((784 * $1)) "$BASH"
}

# label_file COUNT: all ten in turn.
label_file() {
    local i
    be32 $((0x801))
    be32 "$1"
    for ((i = 0; i < $1; i++)); do
        # shellcheck disable=SC2059
        printf "\\x0$((i % 10))"
    done
}

# fashion_files FOLDER TRAIN TEST: all four.
fashion_files() {
    image_file "$2" | gzip -1 >"$1/train-images-idx3-ubyte.gz"
    label_file "$2" | gzip -1 >"$1/train-labels-idx1-ubyte.gz"
    image_file "$3" | gzip -1 >"$1/t10k-images-idx3-ubyte.gz"
    label_file "$3" | gzip -1 >"$1/t10k-labels-idx1-ubyte.gz"
}
