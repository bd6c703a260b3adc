/* Text that grows and JSON trees: what finds no memory or has no text is not printed, nor is anything around it. */
#include <check.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/unit.h"
#include "util/json_tree.h"

/* --- Text that grows ---------------------------------------------------------------------------------------------- */

static void assert_text(pl_emit *emit, const char *expected) {
  char *text;
  size_t length;
  ok(pl_emit_take(emit, &text, &length));
  ck_assert_str_eq(text, expected);
  ck_assert_uint_eq(strlen(text), length);
  free(text);
}

START_TEST(values_have_their_text) {
  pl_emit emit = {0};
  pl_emit_int(&emit, -(INT64_C(1) << 53));
  EMIT(&emit, " ");
  pl_emit_int(&emit, INT64_C(1) << 53);
  EMIT(&emit, " ");
  pl_emit_int(&emit, 0);
  EMIT(&emit, " ");
  pl_emit_real(&emit, 0.1);
  pl_emit_format(&emit, " %s=%d ", "n", -3);
  pl_emit_string(&emit, "a\"b\\c\n\xc3\xa9");
  pl_emit_string(&emit, NULL);
  pl_emit_hash(&emit, 0xABC);
  assert_text(&emit,
              "-9007199254740992 9007199254740992 0 0.1 n=-3 \"a\\\"b\\\\c\\u000a\xc3\xa9\"\"\""
              "\"0000000000000abc\"");
  assert_text(&emit, "");
}
END_TEST

START_TEST(integers_that_readers_would_lose_fail) {
  static const int64_t beyond[] = {INT64_MIN, -(INT64_C(1) << 53) - 1, (INT64_C(1) << 53) + 1, INT64_MAX};
  for (size_t i = 0; i < sizeof beyond / sizeof *beyond; i++) {
    pl_emit emit = {0};
    char *text;
    size_t length;
    pl_emit_int(&emit, beyond[i]);
    assert_fails(pl_emit_take(&emit, &text, &length), PLANC_BAD_INPUT, "beyond 2^53");
    ck_assert_ptr_null(text);
  }
}
END_TEST

START_TEST(text_grows) {
  enum { TIMES = 20000 };
  pl_emit emit = {0};
  char *text;
  size_t length;
  for (int i = 0; i < TIMES; i++) pl_emit_format(&emit, "%07d", i);
  ok(pl_emit_take(&emit, &text, &length));
  ck_assert_uint_eq(length, TIMES * 7);
  ck_assert_str_eq(text + length - 7, "0019999");
  free(text);
}
END_TEST

START_TEST(the_first_failure_is_kept) {
  pl_emit emit = {0};
  char *text = "";
  size_t length;
  EMIT(&emit, "some");
  pl_emit_real(&emit, INFINITY);
  pl_emit_fail(&emit, planc_error(PLANC_USAGE, "the second"));
  EMIT(&emit, "more");
  assert_fails(pl_emit_take(&emit, &text, &length), PLANC_BAD_INPUT, "not finite");
  ck_assert_ptr_null(text);
}
END_TEST

/* --- JSON trees --------------------------------------------------------------------------------------------------- */

static cJSON *tree_of(void) {
  cJSON *tree = cJSON_CreateObject();
  pl_json_add_string(tree, "name", "a\tb");
  pl_json_add_int(tree, "large", INT64_C(-9007199254740991));
  pl_json_add_real(tree, "real", 1.0 / 3);
  pl_json_add_bool(tree, "yes", true);
  pl_json_add_null(tree, "nothing");
  cJSON *array = pl_json_add_array(pl_json_add_object(tree, "inner"), "list");
  pl_json_add_int(array, NULL, 1);
  pl_json_add_object(array, NULL);
  return tree;
}

START_TEST(trees_are_printed) {
  static const char *const texts[] = {
      [PL_JSON_LINE] =
          "{\"name\":\"a\\u0009b\",\"large\":-9007199254740991,\"real\":0.3333333333333333,\"yes\":true,"
          "\"nothing\":null,\"inner\":{\"list\":[1,{}]}}",
      [PL_JSON_LINES] =
          "{\n\t\"name\":\t\"a\\u0009b\",\n\t\"large\":\t-9007199254740991,\n"
          "\t\"real\":\t0.3333333333333333,\n\t\"yes\":\ttrue,\n\t\"nothing\":\tnull,\n"
          "\t\"inner\":\t{\n\t\t\"list\":\t[1, {}]\n\t}\n}\n"};
  cJSON *tree = tree_of(), *again;
  char *text, *second;
  size_t length;
  ok(pl_json_print(tree, (pl_json_layout)_i, &text, &length));
  ck_assert_str_eq(text, texts[_i]);
  ok(pl_json_tree(text, length, NULL, &again));
  ok(pl_json_print(again, (pl_json_layout)_i, &second, &length));
  ck_assert_str_eq(text, second);
  free(second);
  free(text);
  cJSON_Delete(again);
  cJSON_Delete(tree);
}
END_TEST

static void assert_not_printed(const cJSON *tree) {
  char *text;
  size_t length;
  ck_assert(!pl_json_is_whole(tree));
  assert_fails(pl_json_print(tree, PL_JSON_LINE, &text, &length), PLANC_OUT_OF_MEMORY, "out of memory");
  ck_assert_ptr_null(text);
}

/* A value that found no memory is NULL where it is added, at any depth. */
START_TEST(what_lacks_a_value_is_not_printed) {
  cJSON *tree = tree_of();
  ck_assert(pl_json_is_whole(tree));
  cJSON *inner = pl_json_add_object(tree, "other");
  ck_assert_ptr_null(pl_json_add(inner, "lost", NULL));
  assert_not_printed(tree);
  cJSON_Delete(tree);
  tree = tree_of();
  cJSON *list = pl_json_add_array(tree, "items");
  ck_assert_ptr_null(pl_json_add(list, NULL, NULL));
  assert_not_printed(tree);
  cJSON_Delete(tree);
  assert_not_printed(NULL);
}
END_TEST

/* So do those that were to go into it; what was made for them is freed. */
START_TEST(what_is_added_to_nothing_is_freed) {
  cJSON *tree = tree_of();
  cJSON *lost = pl_json_add(tree, "lost", NULL);
  ck_assert_ptr_null(pl_json_add_int(lost, "n", 1));
  ck_assert_ptr_null(pl_json_add_array(pl_json_add_object(lost, "o"), "a"));
  assert_not_printed(tree);
  cJSON_Delete(tree);
}
END_TEST

START_TEST(text_that_is_no_json_is_refused) {
  const char text[] = "{\"a\": 1, b}", *end = text;
  cJSON *tree;
  assert_fails(pl_json_tree(text, sizeof text - 1, &end, &tree), PLANC_BAD_INPUT, "not valid JSON");
  ck_assert_ptr_null(tree);
  ck_assert_int_eq(end - text, 10);
}
END_TEST

int main(void) {
  Suite *suite = suite_create("json_tree");
  TCase *tests = tcase_create("json_tree");
  tcase_add_test(tests, values_have_their_text);
  tcase_add_test(tests, integers_that_readers_would_lose_fail);
  tcase_add_test(tests, text_grows);
  tcase_add_test(tests, the_first_failure_is_kept);
  tcase_add_loop_test(tests, trees_are_printed, PL_JSON_LINE, PL_JSON_LINES + 1);
  tcase_add_test(tests, what_lacks_a_value_is_not_printed);
  tcase_add_test(tests, what_is_added_to_nothing_is_freed);
  tcase_add_test(tests, text_that_is_no_json_is_refused);
  suite_add_tcase(suite, tests);
  return run_suite(suite);
}
