/**
 * @file
 * Marks what the shared library exports, and opens and closes the C linkage of the headers in C++.
 */
#ifndef FSDP_EXPORT_H
#define FSDP_EXPORT_H

#if defined(_WIN32)
#error "libfsdp supports POSIX systems only"
#elif defined(__GNUC__)
#define FSDP_API __attribute__((visibility("default")))
#else
#define FSDP_API
#endif

#ifdef __cplusplus
#define FSDP_EXTERN_C_BEGIN extern "C" {
#define FSDP_EXTERN_C_END   }
#else
#define FSDP_EXTERN_C_BEGIN
#define FSDP_EXTERN_C_END
#endif

#endif
