/**
 * @file
 * cmocka with the headers that it wants before it.
 */
#ifndef FSDP_TESTS_UNIT_TEST_H
#define FSDP_TESTS_UNIT_TEST_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#endif
