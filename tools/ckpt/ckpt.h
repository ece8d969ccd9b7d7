/**
 * @file
 * What the commands of fsdp-ckpt share: options, what they read from, values in pieces, and how they end.
 */
#ifndef CKPT_H
#define CKPT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "shard/checkpoint/format/folder.h"
#include "shard/checkpoint/format/json.h"
#include "shard/checkpoint/format/model_name.h"
#include "shard/checkpoint/format/problem.h"
#include "shard/checkpoint/format/state.h"
#include "shard/checkpoint/format/tensor_files.h"

/** How the program ends. */
enum {
    CKPT_GOOD      = 0,
    CKPT_DIFFERENT = 1, /* two checkpoints differ, or a file is damaged */
    CKPT_USAGE     = 2,
    CKPT_FAILED    = 3, /* a file cannot be read or written, or memory is short */
};

/** ELEMENTS of a tensor in memory at a time. */
#define CKPT_PIECE ((size_t)1 << 19)

typedef struct ckpt_options {
    const char         *paths[2];
    int                 json;
    int                 stats;
    const fsdpi_stored *dtype;          /* of what is converted; NULL: as it is */
    size_t              max_file_bytes; /* 0: no limit */
    const char         *part;           /* the stem of what is converted; NULL: the model without a name */
} ckpt_options;

/** The tensors under one name in a folder: "model", "optimizer", "NAME.model", "simulation"; or those of a path that is no folder. */
typedef struct ckpt_part {
    char               stem[FSDPI_STEM_BYTES]; /* "" of what is no folder */
    fsdpi_tensor_files files;
} ckpt_part;

/** What a path names: a checkpoint's folder, one with `latest`, a safetensors file or an index. */
typedef struct ckpt_source {
    char        path[FSDPI_FOLDER_PATH_BYTES]; /* where `latest` led */
    bool        is_folder;
    size_t      n_parts;
    ckpt_part  *parts; /* the first is the model without a name; those that are not there have no files */
    bool        has_state;
    fsdpi_state state;
} ckpt_source;

/** The number of a part by its stem; `n_parts`: there is none. */
size_t ckpt_part_find(const ckpt_source *source, const char *stem);

/** Finds and opens all that `path` names. Released with ckpt_source_close() in any case. */
fsdp_status ckpt_source_open(const char *path, ckpt_source *source, fsdpi_problem *problem);

/**
 * Sets `path`, `is_folder`, the state, and the stems of parts, without which `n_parts` is 0; opens no tensors. Where the state cannot
 * be read, there are the stems that it does not tell. The same to release.
 */
fsdp_status ckpt_source_find(const char *path, ckpt_source *source, fsdpi_problem *problem);

/** Opens the tensors of part `index`, where there are some. */
fsdp_status ckpt_source_open_part(ckpt_source *source, size_t index, fsdpi_problem *problem);

void ckpt_source_close(ckpt_source *source);

/** Prints a problem and returns how the program ends with it. */
int ckpt_fail(const fsdpi_problem *problem);

/** What CKPT_PIECE elements of any type and of f64 need. */
typedef struct ckpt_piece {
    void   *raw;
    double *values;
} ckpt_piece;

fsdp_status ckpt_piece_make(ckpt_piece *piece, fsdpi_problem *problem);
void        ckpt_piece_free(ckpt_piece *piece);

/** Whether elements of a type have values here: the library's own types, other integers and BOOL. */
bool ckpt_has_values(fsdpi_stored type);

/** f64, f32, bf16 and f16. */
bool ckpt_is_float(fsdpi_stored type);

/** ELEMENTS of a tensor from `first` on that are read at a time; 0 behind the last. Those below a byte come in even numbers. */
size_t ckpt_piece_count(const fsdpi_tensor_info *tensor, uint64_t first);

/** Reads elements `first` to `first + count` as they are. */
fsdp_status ckpt_read_raw(const fsdpi_placed_tensor *tensor, uint64_t first, size_t count, void *raw,
                          fsdpi_problem *problem);

/** Elements as f64; of i64 and u64 rounded. */
void ckpt_to_values(fsdpi_stored type, const void *raw, size_t count, double *values);

/** "2 x 3"; "scalar". Returns `text`. */
const char *ckpt_shape_text(const fsdpi_tensor_info *tensor, char *text, size_t bytes);

/** Puts name, type, shape and bytes of a tensor into the object that is open. */
void ckpt_put_tensor(fsdpi_json_writer *writer, const fsdpi_tensor_info *tensor);

/** Prints a text that has been written, and returns `result`, or how the program ends where that failed. */
int ckpt_print_json(fsdpi_json_writer *writer, int result);

int ckpt_list(const ckpt_options *options);
int ckpt_verify(const ckpt_options *options);
int ckpt_compare(const ckpt_options *options);
int ckpt_convert(const ckpt_options *options);

#endif
