#include "tools/preload/engine/types.h"

#include <stdlib.h>

typedef enum { REAL, COMPLEX, SIGNED, UNSIGNED, OTHER } number_kind;

/* A place in a table with open addressing: types that MPI names. */
typedef struct {
    MPI_Datatype type;
    bool         used, contiguous;
    number_kind  kind;
    int          size;
} named_type;

enum { PLACES = 256 }; /* a power of 2, well above the number of types below */
static named_type NAMED[PLACES];
static int        moved_key = MPI_KEYVAL_INVALID;

static size_t place_of(MPI_Datatype type)
{
    const uint64_t mixed = (uint64_t)(uintptr_t)type * 0x9E3779B97F4A7C15u;

    return (size_t)(mixed >> 56) % PLACES;
}

static const named_type *find_named(MPI_Datatype type)
{
    size_t place = place_of(type);

    while (NAMED[place].used) {
        if (NAMED[place].type == type) {
            return &NAMED[place];
        }
        place = (place + 1) % PLACES;
    }
    return NULL;
}

/* Bytes without gaps before, between or behind them. */
static bool is_dense(MPI_Datatype type, int size)
{
    MPI_Aint lower, extent, true_lower, true_extent;

    return PMPI_Type_get_extent(type, &lower, &extent) == MPI_SUCCESS &&
           PMPI_Type_get_true_extent(type, &true_lower, &true_extent) == MPI_SUCCESS && lower == 0 && true_lower == 0 &&
           extent == size && true_extent == size;
}

static int add_named(MPI_Datatype type, number_kind kind)
{
    size_t place = place_of(type);
    int    size;

    if (type == MPI_DATATYPE_NULL || find_named(type) != NULL) {
        return MPI_SUCCESS;
    }
    const int code = PMPI_Type_size(type, &size);
    if (code != MPI_SUCCESS || size <= 0) {
        return code;
    }
    while (NAMED[place].used) {
        place = (place + 1) % PLACES;
    }
    NAMED[place] =
        (named_type){.type = type, .used = true, .contiguous = is_dense(type, size), .kind = kind, .size = size};
    return MPI_SUCCESS;
}

static int add_all(const MPI_Datatype *types, size_t count, number_kind kind)
{
    for (size_t i = 0; i < count; i++) {
        const int code = add_named(types[i], kind);

        if (code != MPI_SUCCESS) {
            return code;
        }
    }
    return MPI_SUCCESS;
}

#define COUNT_OF(list) (sizeof(list) / sizeof((list)[0]))

int fsdpi_types_open(void)
{
    const MPI_Datatype reals[]     = {MPI_DOUBLE, MPI_FLOAT, MPI_REAL, MPI_DOUBLE_PRECISION, MPI_REAL4, MPI_REAL8};
    const MPI_Datatype complexes[] = {MPI_C_FLOAT_COMPLEX, MPI_C_DOUBLE_COMPLEX, MPI_COMPLEX,
                                      MPI_DOUBLE_COMPLEX,  MPI_COMPLEX8,         MPI_COMPLEX16};
    const MPI_Datatype integers[]  = {MPI_INT,      MPI_LONG,     MPI_LONG_LONG, MPI_SHORT,    MPI_SIGNED_CHAR,
                                      MPI_INT8_T,   MPI_INT16_T,  MPI_INT32_T,   MPI_INT64_T,  MPI_INTEGER,
                                      MPI_INTEGER1, MPI_INTEGER2, MPI_INTEGER4,  MPI_INTEGER8, MPI_AINT,
                                      MPI_OFFSET,   MPI_COUNT};
    const MPI_Datatype naturals[]  = {MPI_UNSIGNED,       MPI_UNSIGNED_LONG, MPI_UNSIGNED_LONG_LONG,
                                      MPI_UNSIGNED_SHORT, MPI_UNSIGNED_CHAR, MPI_UINT8_T,
                                      MPI_UINT16_T,       MPI_UINT32_T,      MPI_UINT64_T};
    const MPI_Datatype others[]    = {MPI_BYTE,    MPI_CHAR,      MPI_WCHAR,       MPI_C_BOOL,
                                      MPI_LOGICAL, MPI_CHARACTER, MPI_LONG_DOUBLE, MPI_C_LONG_DOUBLE_COMPLEX,
                                      MPI_2REAL,   MPI_2INTEGER,  MPI_2INT,        MPI_2DOUBLE_PRECISION};

    int code = PMPI_Type_create_keyval(MPI_TYPE_NULL_COPY_FN, MPI_TYPE_NULL_DELETE_FN, &moved_key, NULL);
    code     = code == MPI_SUCCESS ? add_all(reals, COUNT_OF(reals), REAL) : code;
    code     = code == MPI_SUCCESS ? add_all(complexes, COUNT_OF(complexes), COMPLEX) : code;
    code     = code == MPI_SUCCESS ? add_all(integers, COUNT_OF(integers), SIGNED) : code;
    code     = code == MPI_SUCCESS ? add_all(naturals, COUNT_OF(naturals), UNSIGNED) : code;
    return code == MPI_SUCCESS ? add_all(others, COUNT_OF(others), OTHER) : code;
}

static bool is_orderly(MPI_Datatype type);

/* One that nobody frees. */
static bool is_predefined(int combiner)
{
    return combiner == MPI_COMBINER_NAMED || combiner == MPI_COMBINER_F90_REAL ||
           combiner == MPI_COMBINER_F90_COMPLEX || combiner == MPI_COMBINER_F90_INTEGER;
}

/* A type made of another, whose own shape says in which order its bytes come. */
static bool is_orderly_of(MPI_Datatype type, int combiner, int n_integers, int n_addresses, int n_types)
{
    int          integers[8];
    MPI_Aint     addresses[4];
    MPI_Datatype parts[1];
    int          named, i, a, t;

    if (n_integers > 8 || n_addresses > 4 || n_types != 1 ||
        PMPI_Type_get_contents(type, n_integers, n_addresses, n_types, integers, addresses, parts) != MPI_SUCCESS) {
        return false;
    }
    bool orderly = is_orderly(parts[0]);
    if (combiner == MPI_COMBINER_VECTOR) { /* count, length of a block, elements from one to the next */
        orderly = orderly && (integers[0] <= 1 || integers[1] == integers[2]);
    }
    if (PMPI_Type_get_envelope(parts[0], &i, &a, &t, &named) == MPI_SUCCESS && !is_predefined(named)) {
        (void)PMPI_Type_free(&parts[0]);
    }
    return orderly;
}

/* Whether the bytes come in the order of their addresses, as far as that is to be seen soon. */
static bool is_orderly(MPI_Datatype type)
{
    int n_integers, n_addresses, n_types, combiner;

    if (PMPI_Type_get_envelope(type, &n_integers, &n_addresses, &n_types, &combiner) != MPI_SUCCESS) {
        return false;
    }
    if (is_predefined(combiner)) {
        return true;
    }
    if (combiner != MPI_COMBINER_DUP && combiner != MPI_COMBINER_CONTIGUOUS && combiner != MPI_COMBINER_VECTOR &&
        combiner != MPI_COMBINER_RESIZED) {
        return false;
    }
    return is_orderly_of(type, combiner, n_integers, n_addresses, n_types);
}

/* What has been found out about a type stays with it as an attribute: 2 is contiguous, 1 is not. */
static bool is_contiguous(MPI_Datatype type, int size)
{
    void *known;
    int   found;

    if (PMPI_Type_get_attr(type, moved_key, &known, &found) == MPI_SUCCESS && found) {
        return (uintptr_t)known == 2;
    }
    const bool contiguous = is_dense(type, size) && is_orderly(type);
    (void)PMPI_Type_set_attr(type, moved_key, (void *)(uintptr_t)(contiguous ? 2 : 1)); /* else it is looked at again */
    return contiguous;
}

fsdpi_moved fsdpi_type_moved(MPI_Datatype type)
{
    const named_type *named = find_named(type);
    int               size;

    if (named != NULL) {
        return (fsdpi_moved){.size = (uint64_t)named->size, .contiguous = named->contiguous};
    }
    if (type == MPI_DATATYPE_NULL || PMPI_Type_size(type, &size) != MPI_SUCCESS || size <= 0) {
        return (fsdpi_moved){.size = 0, .contiguous = false};
    }
    return (fsdpi_moved){.size = (uint64_t)size, .contiguous = is_contiguous(type, size)};
}

static bool reduced_op(MPI_Op op, fsdp_redop *redop)
{
    if (op == MPI_SUM) {
        *redop = FSDP_SUM;
    } else if (op == MPI_MAX) {
        *redop = FSDP_MAX;
    } else if (op == MPI_MIN) {
        *redop = FSDP_MIN;
    } else if (op == MPI_PROD) {
        *redop = FSDP_PROD;
    } else {
        return false;
    }
    return true;
}

/* Sums and products modulo 2^n do not ask for the sign; of complex numbers only the sum goes part by part. */
static bool reduced_dtype(const named_type *type, fsdp_redop op, fsdp_dtype *dtype)
{
    const bool wraps = op == FSDP_SUM || op == FSDP_PROD;
    const int  part  = type->kind == COMPLEX ? type->size / 2 : type->size;

    switch (type->kind) {
    case REAL:
        *dtype = part == 8 ? FSDP_F64 : FSDP_F32;
        return part == 8 || part == 4;
    case COMPLEX:
        *dtype = part == 8 ? FSDP_F64 : FSDP_F32;
        return op == FSDP_SUM && (part == 8 || part == 4);
    case SIGNED:
    case UNSIGNED:
        *dtype = part == 8 ? FSDP_I64 : part == 4 ? FSDP_I32 : FSDP_U8;
        return part != 2 && (wraps || (part == 1) == (type->kind == UNSIGNED));
    case OTHER:
        break;
    }
    return false;
}

fsdpi_reducible fsdpi_type_reduced(MPI_Datatype type, MPI_Op op, fsdpi_reduced *reduced)
{
    const named_type *named = find_named(type);

    if (!reduced_op(op, &reduced->op)) {
        return FSDPI_NOT_THIS_OP;
    }
    if (named == NULL || !reduced_dtype(named, reduced->op, &reduced->dtype)) {
        return FSDPI_NOT_THIS_TYPE;
    }
    reduced->parts = named->kind == COMPLEX ? 2 : 1;
    reduced->size  = (uint64_t)named->size;
    return FSDPI_REDUCIBLE;
}
