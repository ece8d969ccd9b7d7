! Symmetric buffers as arrays: a module for each type, of which `fsdp` makes one.
#define ELEMENT real(c_double)
module fsdp_buffers_of_f64
#include "buffers_of.inc"
end module
#undef ELEMENT

#define ELEMENT real(c_float)
module fsdp_buffers_of_f32
#include "buffers_of.inc"
end module
#undef ELEMENT

#define ELEMENT integer(c_int64_t)
module fsdp_buffers_of_i64
#include "buffers_of.inc"
end module
#undef ELEMENT

#define ELEMENT integer(c_int32_t)
module fsdp_buffers_of_i32
#include "buffers_of.inc"
end module
#undef ELEMENT

#define ELEMENT integer(c_int16_t)
module fsdp_buffers_of_16_bits
#include "buffers_of.inc"
end module
#undef ELEMENT

#define ELEMENT integer(c_int8_t)
module fsdp_buffers_of_u8
#include "buffers_of.inc"
end module
