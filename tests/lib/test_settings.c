#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/settings.h"
#include "tests/support/unit_test.h"

static int clear_environment(void **state)
{
    (void)state;
    unsetenv("FSDP_VERIFY");
    unsetenv("FSDP_MESSAGE_BYTES");
    unsetenv("FSDP_TIMEOUT_S");
    unsetenv("FSDP_ISA");
    unsetenv("FSDP_PROGRESS_CPU");
    return 0;
}

static void defaults_hold_where_nothing_is_said(void **state)
{
    fsdp_config config;

    (void)state;
    assert_int_equal(FSDP_OK, fsdpi_settings_resolve(NULL, &config));
    assert_int_equal(FSDP_VERIFY_ARGS, config.verify);
    assert_int_equal(600, config.timeout_s);
    assert_int_equal((int64_t)1 << 30, config.message_bytes);
    assert_int_equal(2, config.views_in_flight);
}

static void the_environment_wins_over_the_default(void **state)
{
    fsdp_config config;

    (void)state;
    setenv("FSDP_VERIFY", "full", 1);
    setenv("FSDP_MESSAGE_BYTES", "3M", 1);
    assert_int_equal(FSDP_OK, fsdpi_settings_resolve(NULL, &config));
    assert_int_equal(FSDP_VERIFY_FULL, config.verify);
    assert_int_equal(3 << 20, config.message_bytes);
}

static void a_hardware_thread_is_a_number_or_a_word(void **state)
{
    static const struct {
        const char *text;
        int         value;
    } good[] = {{"auto", FSDP_CPU_AUTO}, {"none", FSDP_CPU_NONE}, {"0", 0}, {"4095", 4095}};
    fsdp_config config;

    (void)state;
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
        setenv("FSDP_PROGRESS_CPU", good[i].text, 1);
        assert_int_equal(FSDP_OK, fsdpi_settings_resolve(NULL, &config));
        assert_int_equal(good[i].value, config.progress_cpu);
    }
    unsetenv("FSDP_PROGRESS_CPU");
    assert_int_equal(FSDP_OK, fsdpi_settings_resolve(NULL, &config));
    assert_int_equal(FSDP_CPU_AUTO, config.progress_cpu);
}

static void the_struct_wins_over_the_environment(void **state)
{
    fsdp_config given, config;

    (void)state;
    setenv("FSDP_VERIFY", "full", 1);
    setenv("FSDP_TIMEOUT_S", "5", 1);
    fsdp_config_init(&given);
    given.verify = FSDP_VERIFY_OFF;
    assert_int_equal(FSDP_OK, fsdpi_settings_resolve(&given, &config));
    assert_int_equal(FSDP_VERIFY_OFF, config.verify);
    assert_int_equal(5, config.timeout_s);
}

static void values_that_make_no_sense_are_named(void **state)
{
    static const struct {
        const char *variable, *value;
    } bad[] = {
        {"FSDP_VERIFY", "ful"},       {"FSDP_VERIFY", "off|args"},    {"FSDP_TIMEOUT_S", "-1"},
        {"FSDP_TIMEOUT_S", "10 s"},   {"FSDP_MESSAGE_BYTES", "0"},    {"FSDP_MESSAGE_BYTES", "4G"},
        {"FSDP_MESSAGE_BYTES", "1T"}, {"FSDP_MESSAGE_BYTES", "1MB"},  {"FSDP_TIMEOUT_S", "99999999999999999999"},
        {"FSDP_PROGRESS_CPU", "-1"},  {"FSDP_PROGRESS_CPU", "-2"},    {"FSDP_PROGRESS_CPU", "4096"},
        {"FSDP_PROGRESS_CPU", "0-3"}, {"FSDP_PROGRESS_CPU", "autos"}, {"FSDP_MESSAGE_BYTES", "9223372036854775807G"}};
    fsdp_config config;

    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        clear_environment(state);
        setenv(bad[i].variable, bad[i].value, 1);
        assert_int_equal(FSDP_ERR_ARG, fsdpi_settings_resolve(NULL, &config));
        assert_non_null(strstr(fsdp_last_error(NULL), bad[i].variable));
        assert_non_null(strstr(fsdp_last_error(NULL), bad[i].value));
        assert_non_null(strstr(fsdp_last_error(NULL), "it accepts"));
    }
}

/* "4096 or more" would be no help for them. */
static void numbers_beyond_64_bits_are_called_too_large(void **state)
{
    fsdp_config config;

    clear_environment(state);
    setenv("FSDP_STAGING_BYTES", "99999999999999999999", 1);
    assert_int_equal(FSDP_ERR_ARG, fsdpi_settings_resolve(NULL, &config));
    assert_string_equal(
        "FSDP_STAGING_BYTES is '99999999999999999999', which is too large; it accepts 4096 or more, at most "
        "9223372036854775807",
        fsdp_last_error(NULL));
    setenv("FSDP_STAGING_BYTES", "9223372036854775807K", 1);
    assert_int_equal(FSDP_ERR_ARG, fsdpi_settings_resolve(NULL, &config));
    assert_non_null(strstr(fsdp_last_error(NULL), "too large"));
    setenv("FSDP_STAGING_BYTES", "4097x", 1);
    assert_int_equal(FSDP_ERR_ARG, fsdpi_settings_resolve(NULL, &config));
    assert_null(strstr(fsdp_last_error(NULL), "too large"));
    unsetenv("FSDP_STAGING_BYTES");
}

static void every_instruction_set_has_a_name_wherever_this_runs(void **state)
{
    static const char *const names[] = {"auto", "scalar", "avx2", "avx512", "neon"};
    fsdp_config              config;

    (void)state;
    for (int isa = FSDP_ISA_AUTO; isa <= FSDP_ISA_NEON; isa++) {
        setenv("FSDP_ISA", names[isa], 1);
        assert_int_equal(FSDP_OK, fsdpi_settings_resolve(NULL, &config));
        assert_int_equal(isa, config.isa);
    }
    setenv("FSDP_ISA", "sve", 1);
    assert_int_equal(FSDP_ERR_ARG, fsdpi_settings_resolve(NULL, &config));
    assert_non_null(strstr(fsdp_last_error(NULL), "avx512|neon"));
    unsetenv("FSDP_ISA");
}

static void an_empty_variable_counts_as_unset(void **state)
{
    fsdp_config config;

    (void)state;
    setenv("FSDP_VERIFY", "", 1);
    assert_int_equal(FSDP_OK, fsdpi_settings_resolve(NULL, &config));
    assert_int_equal(FSDP_VERIFY_ARGS, config.verify);
}

static void a_struct_value_out_of_range_names_the_field(void **state)
{
    fsdp_config given, config;

    (void)state;
    fsdp_config_init(&given);
    given.views_in_flight = 0;
    assert_int_equal(FSDP_ERR_ARG, fsdpi_settings_resolve(&given, &config));
    assert_non_null(strstr(fsdp_last_error(NULL), "views_in_flight is 0; it accepts 1 to 1024"));
    assert_int_equal(2, config.views_in_flight);
}

static void the_table_prints_every_setting(void **state)
{
    static const char *const variables[] = {
        "FSDP_LOG",           "FSDP_VERIFY",        "FSDP_TIMEOUT_S",      "FSDP_ISA",
        "FSDP_MESSAGE_BYTES", "FSDP_STAGING_BYTES", "FSDP_VIEWS_IN_FLIGHT"};
    char  *text = NULL;
    size_t size = 0;
    FILE  *file = open_memstream(&text, &size);

    (void)state;
    assert_int_equal(FSDP_OK, fsdp_settings_print(NULL, file));
    (void)fclose(file);
    for (size_t i = 0; i < sizeof variables / sizeof variables[0]; i++) {
        assert_non_null(strstr(text, variables[i]));
    }
    assert_non_null(strstr(text, "args"));
    free(text);
    assert_int_equal(FSDP_ERR_ARG, fsdp_settings_print(NULL, NULL));
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(defaults_hold_where_nothing_is_said, clear_environment),
        cmocka_unit_test_setup(the_environment_wins_over_the_default, clear_environment),
        cmocka_unit_test_setup(a_hardware_thread_is_a_number_or_a_word, clear_environment),
        cmocka_unit_test_setup(the_struct_wins_over_the_environment, clear_environment),
        cmocka_unit_test_setup(values_that_make_no_sense_are_named, clear_environment),
        cmocka_unit_test_setup(numbers_beyond_64_bits_are_called_too_large, clear_environment),
        cmocka_unit_test_setup(every_instruction_set_has_a_name_wherever_this_runs, clear_environment),
        cmocka_unit_test_setup(an_empty_variable_counts_as_unset, clear_environment),
        cmocka_unit_test_setup(a_struct_value_out_of_range_names_the_field, clear_environment),
        cmocka_unit_test_setup(the_table_prints_every_setting, clear_environment),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
