#include <stdlib.h>
#include <string.h>

#include "tests/support/unit_test.h"
#include "tools/common/options.h"

typedef struct fields {
    size_t      count, bytes, rate;
    double      number;
    const char *text;
    int         choice, flag;
    size_t      length;
    const char *from, *to;
} fields;

static void read_length(const cli_option *option, const char *text, void *field, char *message)
{
    if (strlen(text) > 3) {
        CLI_SAY(message, "--%s is of %zu letters; use at most 3", option->name, strlen(text));
    }
    *(size_t *)field = strlen(text);
}

#define FIELD(name) .field = offsetof(fields, name)

static const cli_option options[] = {
    {"count", CLI_COUNT, FIELD(count), 2, 100, .help = "of things"},
    {"bytes", CLI_BYTES, FIELD(bytes), 1, 1e15, .help = "of them", .fallback = "1K"},
    {"rate", CLI_RATE, FIELD(rate), 1, 1e18, .help = "per second"},
    {"number", CLI_NUMBER, FIELD(number), 0.5, 10, .help = "any"},
    {"text", CLI_TEXT, FIELD(text), .help = "any"},
    {"choice", CLI_CHOICE, FIELD(choice), .choices = "one|two|three", .help = "one of them"},
    {"flag", CLI_FLAG, FIELD(flag), .help = "or not"},
    {"length", CLI_CUSTOM, FIELD(length), .read = read_length, .help = "of a word"},
};
static const cli_option with_arguments[] = {
    {"FROM", CLI_ARGUMENT, FIELD(from)},
    {"flag", CLI_FLAG, FIELD(flag), .help = "or not"},
    {"TO", CLI_ARGUMENT, FIELD(to)},
    {"text", CLI_TEXT, FIELD(text), .help = "any"},
};

static char message[CLI_MESSAGE_BYTES];

static fields read_words(const cli_option *rows, size_t n_rows, char **words)
{
    fields f    = {.count = 7, .choice = 2};
    int    argc = 0;

    while (words[argc]) {
        argc++;
    }
    memset(message, 'x', sizeof message);
    cli_options_read(argc, words, rows, n_rows, &f, message);
    return f;
}

#define READ(rows, ...) read_words(rows, sizeof(rows) / sizeof *(rows), (char *[]){"program", __VA_ARGS__, NULL})

static void every_kind_of_option_is_read(void **state)
{
    const fields f = READ(options, "--count", "100", "--bytes=3M", "--rate", "3M", "--number", "2.5e0", "--text",
                          "-x y", "--choice", "Two", "--flag", "--length", "abc");

    (void)state;
    assert_string_equal("", message);
    assert_int_equal(100, f.count);
    assert_int_equal(3 << 20, f.bytes);
    assert_int_equal(3000000, f.rate);
    assert_true(f.number == 2.5);
    assert_string_equal("-x y", f.text);
    assert_int_equal(1, f.choice);
    assert_int_equal(1, f.flag);
    assert_int_equal(3, f.length);
}

static void what_is_left_out_keeps_its_value_and_the_last_one_counts(void **state)
{
    const fields f = READ(options, "--bytes", "1", "--bytes", "2");

    (void)state;
    assert_string_equal("", message);
    assert_int_equal(7, f.count);
    assert_int_equal(2, f.bytes);
    assert_int_equal(2, f.choice);
    assert_int_equal(0, f.flag);
    assert_null(f.text);
}

/* What READ() has just said; nothing that was wrong reached the field that it belongs to. */
static void expect(const fields *f, const char *says)
{
    assert_string_equal(says, message);
    assert_int_equal(7, f->count);
    assert_int_equal(0, f->bytes);
    assert_true(f->number == 0);
    assert_int_equal(2, f->choice);
}

static void a_wrong_value_is_said_with_what_would_be_right(void **state)
{
    static const char *const counts[]  = {"1", "101", "", "-3", "+3", " 3", "3.5", "3K", "0x3", "99999999999999999999"};
    static const char *const bytes[]   = {"0", "1Q", "1KK", "1k", "K", "1 K", "2000T", "99999999999999999T"};
    static const char *const numbers[] = {"", "0.4", "10.5", "nan", "inf", "1,5", "1x"};
    static const char *const choices[] = {"", "on", "one|two", "two|", "four"};
    char                     says[200];

    (void)state;
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
        const fields f = READ(options, "--count", (char *)counts[i]);

        (void)snprintf(says, sizeof says, "--count is '%s'; give a whole number from 2 to 100", counts[i]);
        expect(&f, says);
    }
    for (size_t i = 0; i < sizeof bytes / sizeof *bytes; i++) {
        const fields f = READ(options, "--bytes", (char *)bytes[i]);

        (void)snprintf(says, sizeof says,
                       "--bytes is '%s'; give a whole number from 1 to 1000000000000000, if you like with K, M, G or T",
                       bytes[i]);
        expect(&f, says);
    }
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        const fields f = READ(options, "--number", (char *)numbers[i]);

        (void)snprintf(says, sizeof says, "--number is '%s'; give a number from 0.5 to 10", numbers[i]);
        expect(&f, says);
    }
    for (size_t i = 0; i < sizeof choices / sizeof *choices; i++) {
        const fields f = READ(options, "--choice", (char *)choices[i]);

        (void)snprintf(says, sizeof says, "--choice is '%s'; use one|two|three", choices[i]);
        expect(&f, says);
    }
}

static void a_wrong_line_is_said_once_and_the_first_mistake_counts(void **state)
{
    static const struct {
        const char *first, *second, *says;
    } wrong[] = {
        {"--text", "", "--text is empty; leave it out or give it a value"},
        {"--length", "word", "--length is of 4 letters; use at most 3"},
        {"--flag", "--text", "--text needs a value; --help lists the options"},
        {"--flag=1", "--text", "option '--flag=1' is unknown or takes no value; --help lists the options"},
        {"--size", "--text", "option '--size' is unknown; --help lists the options"},
        {"-n", "--text", "option '-n' is unknown; --help lists the options"},
        {"word", "--text", "argument 'word' belongs to no option; --help lists the options"},
        {"--", "--flag", "argument '--flag' belongs to no option; --help lists the options"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        const fields f = READ(options, (char *)wrong[i].first, (char *)wrong[i].second);

        expect(&f, wrong[i].says);
    }
}

static void arguments_stand_anywhere_between_the_options(void **state)
{
    fields f = READ(with_arguments, "a", "--text", "t", "b", "--flag");

    (void)state;
    assert_string_equal("", message);
    assert_string_equal("a", f.from);
    assert_string_equal("b", f.to);
    assert_string_equal("t", f.text);
    assert_int_equal(1, f.flag);

    f = READ(with_arguments, "-", "--", "--flag");
    assert_string_equal("", message);
    assert_string_equal("-", f.from);
    assert_string_equal("--flag", f.to);
    assert_int_equal(0, f.flag);
}

static void arguments_that_are_missing_or_too_many_are_named(void **state)
{
    (void)state;
    (void)READ(with_arguments, "--flag");
    assert_string_equal("FROM is missing; --help lists what is needed", message);
    (void)READ(with_arguments, "a");
    assert_string_equal("TO is missing; --help lists what is needed", message);
    (void)READ(with_arguments, "a", "");
    assert_string_equal("TO is empty; give it a value", message);
    (void)READ(with_arguments, "a", "b", "--flag", "c");
    assert_string_equal("argument 'c' is one too many; --help lists the options", message);
    (void)READ(with_arguments, "--FROM", "a", "b");
    assert_string_equal("option '--FROM' is unknown; --help lists the options", message);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_kind_of_option_is_read),
        cmocka_unit_test(what_is_left_out_keeps_its_value_and_the_last_one_counts),
        cmocka_unit_test(a_wrong_value_is_said_with_what_would_be_right),
        cmocka_unit_test(a_wrong_line_is_said_once_and_the_first_mistake_counts),
        cmocka_unit_test(arguments_stand_anywhere_between_the_options),
        cmocka_unit_test(arguments_that_are_missing_or_too_many_are_named),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
