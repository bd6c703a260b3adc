/* The table of settings: what it says of ranges and defaults holds wherever a setting is read. */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "planc/plan.h"
#include "planc/settings.h"
#include "tests/support/unit.h"
#include "util/size.h"

typedef enum kind { KIND_bytes, KIND_count, KIND_share, KIND_flag, KIND_level } kind;

static const struct {
  const char *name, *text;
  kind kind;
  size_t offset;
  int64_t least, most, standard;
} rows[] = {
#define X(name, option, kind, least, most, standard, users, help)                           \
  {#name, PLANC_SETTING_TEXT(standard), KIND_##kind, offsetof(planc_settings, name), least, \
   most,  PLANC_STANDARD_##name},
    PLANC_SETTINGS(X)
#undef X
};
enum { ROWS = sizeof rows / sizeof *rows };

static int64_t *value_of(planc_settings *settings, int row) {
  return (int64_t *)((char *)settings + rows[row].offset);
}

/* --- The plan reader ---------------------------------------------------------------------------------------------- */

/* Reads a plan again that states a value of one setting, `more` added to the last digit of that. */
static planc_status read_with(int row, int64_t value, int more, int64_t *out) {
  planc_plan *plan, *again = NULL;
  char *text, key[64];
  size_t length;
  ok(planc_plan_read("tests/data/plan/jobs.plan", &plan));
  *value_of(&plan->settings, row) = value;
  ok(planc_plan_print(plan, &text, &length));
  int n = snprintf(key, sizeof key, ",\"%s\":%lld,", rows[row].name, (long long)value);
  char *stated = strstr(text, key);
  ck_assert_ptr_nonnull(stated);
  stated[n - 2] = (char)(stated[n - 2] + more);
  planc_status status = planc_plan_parse(text, length, "x.plan", &again);
  if (!status) *out = *value_of(&again->settings, row);
  planc_plan_free(again);
  planc_plan_free(plan);
  free(text);
  return status;
}

START_TEST(a_plan_states_what_is_in_range) {
  const int64_t least = rows[_i].least, most = rows[_i].most;
  int64_t value;
  ok(read_with(_i, least, 0, &value));
  ck_assert_int_eq(value, least);
  ok(read_with(_i, most, 0, &value));
  ck_assert_int_eq(value, most);
  assert_fails(read_with(_i, least, -1, &value), PLANC_BAD_INPUT, "x.plan:1:");
  assert_fails(read_with(_i, most, 1, &value), PLANC_BAD_INPUT, "x.plan:1:");
}
END_TEST

/* --- Defaults ----------------------------------------------------------------------------------------------------- */

/* The text is the number as one would give it. */
START_TEST(defaults_are_told_as_they_are) {
  int64_t value = 0;
  if (rows[_i].standard == 0) {
    ck_assert((rows[_i].kind == KIND_flag) == (*rows[_i].text == '\0'));
    return;
  }
  ck_assert_int_ge(rows[_i].standard, rows[_i].least);
  ck_assert_int_le(rows[_i].standard, rows[_i].most);
  if (rows[_i].kind == KIND_bytes) ok(pl_size_parse(rows[_i].text, &value));
  if (rows[_i].kind == KIND_level) value = strtoll(rows[_i].text, NULL, 10) + 1;
  if (rows[_i].kind == KIND_share) value = strtoll(rows[_i].text, NULL, 10) * PLANC_UNIT_PERCENT;
  ck_assert_int_eq(value, rows[_i].standard);
}
END_TEST

/* Zico, 6.3; TENSILE, whose rate limits nothing where there is one job. */
START_TEST(defaults_are_those_of_the_papers) {
  ck_assert_int_eq(PLANC_STANDARD_region, 64 << 20);
  ck_assert_int_eq(PLANC_STANDARD_swap_rate, 1000000);
}
END_TEST

int main(void) {
  Suite *suite = suite_create("settings");
  TCase *tests = tcase_create("all");
  tcase_add_loop_test(tests, a_plan_states_what_is_in_range, 0, ROWS);
  tcase_add_loop_test(tests, defaults_are_told_as_they_are, 0, ROWS);
  tcase_add_test(tests, defaults_are_those_of_the_papers);
  suite_add_tcase(suite, tests);
  return run_suite(suite);
}
