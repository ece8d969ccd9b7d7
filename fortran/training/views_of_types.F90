! Views as arrays: a module for each type, of which `fsdp` makes one.
#define ELEMENT real(c_double)
#define DTYPES FSDP_F64
module fsdp_views_of_f64
#include "views_of.inc"
end module
#undef ELEMENT
#undef DTYPES

#define ELEMENT real(c_float)
#define DTYPES FSDP_F32
module fsdp_views_of_f32
#include "views_of.inc"
end module
#undef ELEMENT
#undef DTYPES

#define ELEMENT integer(c_int16_t)
#define DTYPES FSDP_BF16, FSDP_F16
module fsdp_views_of_16_bits
#include "views_of.inc"
end module
