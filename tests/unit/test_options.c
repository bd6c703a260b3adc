/* Command lines: what is understood, what is wrong use, and what --help shows. */
#include <check.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "program/options.h"
#include "tests/support/unit.h"

static const prog_option options[] = {
    {"count", 'c', "N", "how many"},
    {"size", 's', "SIZE", "how large"},
    {"counts", 0, "N", "a name that another one starts"},
    {"quiet", 'q', NULL, "say nothing"},
    {"dry-run", 0, NULL, "do nothing"},
    {"with", 'w', "WHAT ...", "one more"},
    {0},
};
static const prog_command_line line = {"work", "FROM [TO]", "does the work", options, 1, 2};

enum { MAX_ARGUMENTS = 12 };

/* Parses up to MAX_ARGUMENTS arguments, ended by NULL. */
static planc_status parse(const char *const *arguments, prog_arguments *out) {
  char *argv[MAX_ARGUMENTS];
  int argc = 0;
  while (arguments[argc]) {
    argv[argc] = (char *)(uintptr_t)arguments[argc];
    argc++;
  }
  return prog_options_parse(&line, argc, argv, out);
}

/* --- What is understood ------------------------------------------------------------------------------------------- */

typedef struct understood {
  const char *arguments[MAX_ARGUMENTS];
  const char *count, *size, *counts; /* NULL: absent */
  bool quiet, dry_run, help;
  const char *operands[3];
} understood;

static const understood right[] = {
    {.arguments = {"a"}, .operands = {"a"}},
    {.arguments = {"a", "b"}, .operands = {"a", "b"}},
    {.arguments = {"a", "--count", "3"}, .count = "3", .operands = {"a"}},
    {.arguments = {"--count", "3", "a"}, .count = "3", .operands = {"a"}},
    {.arguments = {"--count=3", "a"}, .count = "3", .operands = {"a"}},
    {.arguments = {"--count=", "a"}, .count = "", .operands = {"a"}},
    {.arguments = {"--count=a=b", "a"}, .count = "a=b", .operands = {"a"}},
    {.arguments = {"-c", "3", "a"}, .count = "3", .operands = {"a"}},
    {.arguments = {"-c3", "a"}, .count = "3", .operands = {"a"}},
    {.arguments = {"-c", "-3", "a"}, .count = "-3", .operands = {"a"}},
    {.arguments = {"--count=--quiet", "a"}, .count = "--quiet", .operands = {"a"}},
    {.arguments = {"--counts", "4", "a"}, .counts = "4", .operands = {"a"}},
    {.arguments = {"--counts=4", "--count=3", "a"}, .count = "3", .counts = "4", .operands = {"a"}},
    {.arguments = {"-q", "a"}, .quiet = true, .operands = {"a"}},
    {.arguments = {"a", "--quiet", "b", "--dry-run"}, .quiet = true, .dry_run = true, .operands = {"a", "b"}},
    {.arguments = {"-"}, .operands = {"-"}},
    {.arguments = {""}, .operands = {""}},
    {.arguments = {"--", "--quiet"}, .operands = {"--quiet"}},
    {.arguments = {"--", "--"}, .operands = {"--"}},
    {.arguments = {"a", "--", "--help"}, .operands = {"a", "--help"}},
    {.arguments = {"--help"}, .help = true},
    {.arguments = {"-h"}, .help = true},
    {.arguments = {"a", "--size", "1G", "-h"}, .size = "1G", .help = true, .operands = {"a"}},
};

static void same_text(const char *seen, const char *wanted) {
  ck_assert_msg(!seen == !wanted, "absent or not");
  if (seen) ck_assert_str_eq(seen, wanted);
}

START_TEST(arguments_are_understood) {
  const understood *u = &right[_i];
  prog_arguments seen;
  planc_status status = parse(u->arguments, &seen);
  ck_assert_msg(!status, "%s", planc_status_message(status));
  same_text(prog_option_value(&seen, "count"), u->count);
  same_text(prog_option_value(&seen, "size"), u->size);
  same_text(prog_option_value(&seen, "counts"), u->counts);
  ck_assert_int_eq(prog_option_given(&seen, "quiet"), u->quiet);
  ck_assert_int_eq(prog_option_given(&seen, "dry-run"), u->dry_run);
  ck_assert_int_eq(seen.help, u->help);
  int32_t n = 0;
  while (u->operands[n]) n++;
  ck_assert_int_eq(seen.n_operands, n);
  for (int32_t i = 0; i < n; i++) ck_assert_str_eq(seen.operands[i], u->operands[i]);
}
END_TEST

START_TEST(some_options_repeat) {
  prog_arguments seen;
  const char *const arguments[] = {"--with", "b", "-q", "a", "-wc", "--with=", NULL};
  ok(parse(arguments, &seen));
  ck_assert_str_eq(prog_option_value(&seen, "with"), "b");
  ck_assert_str_eq(prog_option_repeated(&seen, "with", 0), "b");
  ck_assert_str_eq(prog_option_repeated(&seen, "with", 1), "c");
  ck_assert_str_eq(prog_option_repeated(&seen, "with", 2), "");
  ck_assert_ptr_null(prog_option_repeated(&seen, "with", 3));
  ck_assert_int_eq(prog_option_count(&seen, "with"), 3);
  ck_assert_int_eq(prog_option_count(&seen, "count"), 0);
  ck_assert_ptr_null(prog_option_repeated(&seen, "count", 0));

  char *many[PROG_MAX_REPEATS + 2];
  for (int i = 0; i <= PROG_MAX_REPEATS; i++) many[i] = (char *)(uintptr_t) "-wx";
  many[PROG_MAX_REPEATS + 1] = (char *)(uintptr_t) "a";
  assert_fails(prog_options_parse(&line, PROG_MAX_REPEATS + 2, many, &seen), PLANC_USAGE, "--with: more than 256");
  ok(prog_options_parse(&line, PROG_MAX_REPEATS + 1, many + 1, &seen));
  ck_assert_str_eq(prog_option_repeated(&seen, "with", PROG_MAX_REPEATS - 1), "x");
}
END_TEST

/* --- What is not -------------------------------------------------------------------------------------------------- */

static const struct refused {
  const char *arguments[MAX_ARGUMENTS];
  const char *message;
} wrong[] = {
    {{NULL}, "missing operand: FROM [TO]"},
    {{"--quiet"}, "missing operand: FROM [TO]"},
    {{"a", "b", "c"}, "unexpected operand c"},
    {{"a", "--", "b", "c"}, "unexpected operand c"},
    {{"a", "--nonsense"}, "unknown option --nonsense"},
    {{"a", "--nonsense=3"}, "unknown option --nonsense=3"},
    {{"a", "--coun", "3"}, "unknown option --coun"},
    {{"a", "--countss", "3"}, "unknown option --countss"},
    {{"a", "-x"}, "unknown option -x"},
    {{"a", "--=3"}, "unknown option --=3"},
    {{"a", "--count"}, "--count needs a value: N"},
    {{"a", "-c"}, "--count needs a value: N"},
    {{"a", "-c", "--quiet"}, "--count needs a value: N"},
    {{"a", "--count", "-c", "3"}, "--count needs a value: N"},
    {{"a", "--quiet=1"}, "--quiet takes no value"},
    {{"a", "--quiet="}, "--quiet takes no value"},
    {{"a", "-q1"}, "--quiet takes no value"},
    {{"a", "--count", "3", "-c4"}, "--count is given twice"},
    {{"a", "--quiet", "-q"}, "--quiet is given twice"},
};

START_TEST(anything_else_is_wrong_use) {
  prog_arguments seen;
  planc_status status = parse(wrong[_i].arguments, &seen);
  ck_assert_int_eq(planc_status_code(status), PLANC_USAGE);
  ck_assert_str_eq(planc_status_message(status), wrong[_i].message);
  planc_status_free(status);
}
END_TEST

/* --- Values ------------------------------------------------------------------------------------------------------- */

static const struct number {
  const char *text;
  int64_t low, high, value;
  bool right;
} numbers[] = {
    {"0", 0, 9, 0, true},
    {"9", 0, 9, 9, true},
    {"-5", -5, 5, -5, true},
    {"+5", 0, 9, 5, true},
    {"9223372036854775807", 0, INT64_MAX, INT64_MAX, true},
    {"-9223372036854775808", INT64_MIN, 0, INT64_MIN, true},
    {"10", 0, 9, 0, false},
    {"-1", 0, 9, 0, false},
    {"", 0, 9, 0, false},
    {" ", 0, 9, 0, false},
    {"5x", 0, 9, 0, false},
    {"5.0", 0, 9, 0, false},
    {"0x5", 0, 9, 0, false},
    {"five", 0, 9, 0, false},
    {"9223372036854775808", 0, INT64_MAX, 0, false},
    {"-9223372036854775809", INT64_MIN, 0, 0, false},
};

START_TEST(an_integer_is_held_to_its_range) {
  const struct number *number = &numbers[_i];
  const char *arguments[] = {"a", "--count", number->text, NULL};
  prog_arguments seen;
  ck_assert_ptr_null(parse(arguments, &seen));
  int64_t value;
  planc_status status = prog_option_int(&seen, "count", number->low, number->high, -77, &value);
  if (number->right) {
    ck_assert_ptr_null(status);
    ck_assert_int_eq(value, number->value);
    return;
  }
  ck_assert_int_eq(planc_status_code(status), PLANC_USAGE);
  char expected[200];
  snprintf(expected, sizeof expected, "--count %s: not an integer from %" PRId64 " to %" PRId64, number->text,
           number->low, number->high);
  ck_assert_str_eq(planc_status_message(status), expected);
  planc_status_free(status);
}
END_TEST

START_TEST(an_absent_option_has_its_fallback) {
  static const char *const arguments[] = {"a", NULL};
  prog_arguments seen;
  ck_assert_ptr_null(parse(arguments, &seen));
  int64_t value;
  ck_assert_ptr_null(prog_option_int(&seen, "count", 1, 5, 77, &value));
  ck_assert_int_eq(value, 77); /* need not be in the range: it can stand for "not given" */
  ck_assert_ptr_null(prog_option_size(&seen, "size", -1, &value));
  ck_assert_int_eq(value, -1);
}
END_TEST

START_TEST(a_size_is_read_or_named_with_its_option) {
  static const char *const good[] = {"a", "--size", "1.5K", NULL}, *const bad[] = {"a", "--size", "lots", NULL};
  prog_arguments seen;
  int64_t value;
  ck_assert_ptr_null(parse(good, &seen));
  ck_assert_ptr_null(prog_option_size(&seen, "size", -1, &value));
  ck_assert_int_eq(value, 1536);
  ck_assert_ptr_null(parse(bad, &seen));
  planc_status status = prog_option_size(&seen, "size", -1, &value);
  ck_assert_int_eq(planc_status_code(status), PLANC_USAGE);
  ck_assert_int_eq(strncmp(planc_status_message(status), "--size: lots ", 13), 0);
  planc_status_free(status);
}
END_TEST

/* --- Help --------------------------------------------------------------------------------------------------------- */

START_TEST(help_shows_the_table) {
  char text[1024];
  FILE *out = fmemopen(text, sizeof text, "w");
  ck_assert_ptr_nonnull(out);
  prog_options_help("program", &line, out);
  ck_assert_int_eq(fclose(out), 0);
  ck_assert_str_eq(text,
                   "usage: program work FROM [TO] [option ...]\n"
                   "\n"
                   "does the work\n"
                   "\n"
                   "options:\n"
                   "  -c, --count N                  how many\n"
                   "  -s, --size SIZE                how large\n"
                   "      --counts N                 a name that another one starts\n"
                   "  -q, --quiet                    say nothing\n"
                   "      --dry-run                  do nothing\n"
                   "  -w, --with WHAT ...            one more\n"
                   "  -h, --help                     this text\n");
}
END_TEST

#define COUNT(array) (int)(sizeof(array) / sizeof *(array))

int main(void) {
  TCase *tests = tcase_create("options");
  tcase_add_loop_test(tests, arguments_are_understood, 0, COUNT(right));
  tcase_add_test(tests, some_options_repeat);
  tcase_add_loop_test(tests, anything_else_is_wrong_use, 0, COUNT(wrong));
  tcase_add_loop_test(tests, an_integer_is_held_to_its_range, 0, COUNT(numbers));
  tcase_add_test(tests, an_absent_option_has_its_fallback);
  tcase_add_test(tests, a_size_is_read_or_named_with_its_option);
  tcase_add_test(tests, help_shows_the_table);
  Suite *suite = suite_create("options");
  suite_add_tcase(suite, tests);
  return run_suite(suite);
}
