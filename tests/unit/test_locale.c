/* A program that embeds the libraries may have any locale, process-wide or in a thread: what is read and written is the
 * same to the byte, and the locale stays. */
#include <check.h>
#include <locale.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "planc/plan.h"
#include "planc/policy.h"
#include "planc/timeline.h"
#include "tests/support/graphtext.h"
#include "tests/support/unit.h"
#include "util/file.h"
#include "util/json_tree.h"
#include "util/real.h"

/* --- Locales ------------------------------------------------------------------------------------------------------ */

/* The category LC_NUMERIC of a locale as glibc keeps it in a file, made here: no locale has to be installed. Its fields
 * are the decimal point, the separator and size of groups, both characters as integers, and the character set. */
typedef struct numeric_file {
  uint32_t magic, n_fields, at[6];
  char point[4], separator[2], grouping[2];
  uint32_t wide_point, wide_separator;
  char codeset[6];
} numeric_file;

/* "0,015" as in German, and a point of two bytes as in Arabic. */
static const struct {
  const char *name, *point;
  uint32_t wide_point;
} locales[] = {{"comma", ",", ','}, {"arabic", "\xd9\xab", 0x66b}};
enum { N_LOCALES = 2 };

static char folder[] = "/tmp/planc-locale-XXXXXX";

static void name_locale(int l, const char *file, char out[128]) {
  snprintf(out, 128, "%s/%s%s", folder, locales[l].name, file);
}

static void write_locale(int l) {
  numeric_file numeric = {.magic = 0x20031115 ^ LC_NUMERIC,
                          .n_fields = 6,
                          .at = {offsetof(numeric_file, point), offsetof(numeric_file, separator),
                                 offsetof(numeric_file, grouping), offsetof(numeric_file, wide_point),
                                 offsetof(numeric_file, wide_separator), offsetof(numeric_file, codeset)},
                          .grouping = {3, 0},
                          .separator = ".",
                          .wide_point = locales[l].wide_point,
                          .wide_separator = '.',
                          .codeset = "UTF-8"};
  char path[128];
  memcpy(numeric.point, locales[l].point, strlen(locales[l].point));
  name_locale(l, "", path);
  ck_assert_int_eq(mkdir(path, 0700), 0);
  name_locale(l, "/LC_NUMERIC", path);
  ok(pl_file_write(path, (const char *)&numeric, sizeof numeric));
}

/* glibc's newlocale never frees what it parses LOCPATH into; the leak sanitizer asks for this by name. */
const char *__lsan_default_suppressions(void);
const char *__lsan_default_suppressions(void) {
  return "leak:argz_add_sep";
}

static void make_locales(void) {
  ck_assert_ptr_nonnull(mkdtemp(folder));
  for (int l = 0; l < N_LOCALES; l++) write_locale(l);
  ck_assert_int_eq(setenv("LOCPATH", folder, 1), 0);
}

static void remove_locales(void) {
  char path[128];
  for (int l = 0; l < N_LOCALES; l++) {
    name_locale(l, "/LC_NUMERIC", path);
    unlink(path);
    name_locale(l, "", path);
    rmdir(path);
  }
  rmdir(folder);
}

/* The C library in this locale, as it shows to this thread. */
static void assert_in_force(int l) {
  char expected[16], got[16];
  snprintf(expected, sizeof expected, "0%s5", locales[l].point);
  snprintf(got, sizeof got, "%.1f", 0.5);
  ck_assert_str_eq(got, expected);
  ck_assert(strtod(expected, NULL) == 0.5);
}

/* --- What is read and written ------------------------------------------------------------------------------------- */

static void add(pl_emit *all, char *text, size_t length) {
  pl_emit_bytes(all, text, length);
  free(text);
}

static void add_failure(pl_emit *all, planc_status status) {
  ck_assert_ptr_nonnull(status);
  pl_emit_text(all, planc_status_message(status));
  planc_status_free(status);
}

static void add_reals(pl_emit *all) {
  static const char *const texts[] = {"0.015", "-2.5e-7", "1e300", "5e-324", "0.1",
                                      "1,5",   "0x1p3",   " 1",    "inf",    "1e999"};
  char buffer[PL_NUMBER_TEXT];
  for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
    double value;
    if (pl_real_parse(texts[i], &value) && isfinite(value)) {
      pl_emit_text(all, pl_real_text(value, buffer));
      pl_emit_text(all, pl_real_rounded(value, 3, buffer));
    }
    EMIT(all, "\n");
  }
}

/* A graph with a learning rate, its plan, and an attribute out of its range. */
static void add_graph(pl_emit *all) {
  static const char wrong[] =
      "planc-graph: 1\nname: g\ntensors:\n  x: input f32[N]\n  y: f32[N]\nops:\n"
      "  - {op: d, type: dropout, in: [x], out: [y], attrs: {p: 1.25, seed: 1}}\n";
  planc_graph *graph, *train;
  planc_profile *profile;
  planc_plan *plan, *again;
  char *text;
  size_t length;
  ok(planc_graph_read("graphs/lenet-digits.yaml", &graph));
  ok(planc_graph_train(graph, PLANC_SGD, &train));
  ok(planc_graph_print(train, &text, &length));
  add(all, text, length);
  ok(planc_profile_read("profiles/k40m.json", &profile));
  planc_problem problem = {.job.graph = train,
                           .job.profile = profile,
                           .job.batch = 32,
                           .terms.budgets[PLANC_MEMORY_DEVICE] = planc_profile_device(profile)->memory_bytes,
                           .terms.budgets[PLANC_MEMORY_HOST] = -1};
  ok(planc_make_plan(&problem, planc_policy_find("vdnn-all"), &plan));
  ok(planc_plan_print(plan, &text, &length));
  ok(planc_plan_parse(text, length, "p", &again));
  add(all, text, length);
  planc_plan_free(again);
  planc_plan_free(plan);
  planc_profile_free(profile);
  planc_graph_free(train);
  planc_graph_free(graph);
  add_failure(all, planc_graph_parse(wrong, sizeof wrong - 1, "g", &graph));
}

static void add_timeline(pl_emit *all) {
  planc_plan *plan;
  planc_timeline *timeline;
  ok(planc_plan_read("tests/data/timeline/tiny.plan", &plan));
  ok(planc_timeline_read("tests/data/timeline/tiny.json", plan, &timeline));
  for (int64_t i = 0; i < (int64_t)timeline->n_periods * timeline->n_timed; i++)
    pl_emit_format(all, "%lld %lld\n", (long long)timeline->spans[i].start_ns, (long long)timeline->spans[i].end_ns);
  planc_timeline_free(timeline);
  planc_plan_free(plan);
}

static void add_json(pl_emit *all) {
  static const char source[] = "{\"a\":[0.015,-1e-7,123456789.5,12,9007199254740993]}";
  char *text;
  size_t length;
  cJSON *tree;
  ok(pl_json_tree(source, sizeof source - 1, NULL, &tree));
  pl_json_add_real(tree, "b", 1.5);
  ok(pl_json_print(tree, PL_JSON_LINE, &text, &length));
  cJSON_Delete(tree);
  add(all, text, length);
}

static char *everything(void) {
  pl_emit all = {0};
  char *text;
  size_t length;
  add_reals(&all);
  add_graph(&all);
  add_timeline(&all);
  add_json(&all);
  ok(pl_emit_take(&all, &text, &length));
  return text;
}

/* --- Tests -------------------------------------------------------------------------------------------------------- */

START_TEST(everything_holds_reals) {
  char *text = everything();
  static const char *const parts[] = {"0.0150.015\n",
                                      "-2.5e-07-2.5e-07\n",
                                      "\n\n\n\n\n",
                                      "lr: 0.0",
                                      "\"lr\":0.0",
                                      "is 1.25, should be from 0 to 1",
                                      "[0.015,-1e-07,123456789.5,12,"};
  for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
    ck_assert_msg(strstr(text, parts[i]) != NULL, "%s", parts[i]);
  free(text);
}
END_TEST

START_TEST(the_programs_locale_changes_nothing) {
  char *expected = everything();
  ck_assert_ptr_nonnull(setlocale(LC_ALL, "C"));
  ck_assert_ptr_nonnull(setlocale(LC_NUMERIC, locales[_i].name));
  assert_in_force(_i);
  char *got = everything();
  assert_in_force(_i);
  ck_assert_str_eq(got, expected);
  free(got);
  free(expected);
}
END_TEST

START_TEST(a_threads_locale_changes_nothing) {
  char *expected = everything();
  locale_t own = newlocale(LC_NUMERIC_MASK, locales[_i].name, (locale_t)0);
  ck_assert_ptr_nonnull((void *)own);
  locale_t before = uselocale(own);
  assert_in_force(_i);
  char *got = everything();
  assert_in_force(_i);
  ck_assert(uselocale(before) == own);
  freelocale(own);
  ck_assert_str_eq(got, expected);
  free(got);
  free(expected);
}
END_TEST

int main(void) {
  Suite *suite = suite_create("locale");
  TCase *tests = tcase_create("locale");
  tcase_add_unchecked_fixture(tests, make_locales, remove_locales);
  tcase_add_test(tests, everything_holds_reals);
  tcase_add_loop_test(tests, the_programs_locale_changes_nothing, 0, N_LOCALES);
  tcase_add_loop_test(tests, a_threads_locale_changes_nothing, 0, N_LOCALES);
  suite_add_tcase(suite, tests);
  return run_suite(suite);
}
