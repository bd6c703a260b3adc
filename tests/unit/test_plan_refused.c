/* Plans as files: whatever is not in the one form is refused with its place. */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "planc/check.h"
#include "tests/support/mutate.h"
#include "tests/support/unit.h"
#include "util/file.h"

static char *read_small(size_t *out_length) {
  char *text;
  ok(pl_file_read("tests/data/plan/small.plan", 1 << 20, &text, out_length));
  return text;
}

/* The row of op f2 from its type to its flags, and what is behind these. */
#define OF_F2(type, more)                                                                        \
  "\"" type                                                                                      \
  "\",\"phase\":\"forward\",\"in\":[4],\"out\":[5],\"effects\":[],\"attrs\":{},\"flops\":\"7N\"" \
  ",\"traffic\":0,\"flags\":0" more "}"

/* The first `find` after the start of line `line` becomes `replace`. */
static const struct {
  int line;
  const char *find, *replace, *message;
} edits[] = {
    /* Header. */
    {1, "\"planc-plan\":2", "\"planc-plan\":1",
     "x.plan:1:15: plan format 1 is not read, only format 2: plan again with this planc"},
    {1, "\"planc-plan\":2", "\"planc-plan\":3", "x.plan:1:15: plan format 3 is not read, only format 2"},
    {1, "\"name\"", "\"Name\"", "x.plan:1:18: expected ...name\""},
    {1, "{\"planc", "{ \"planc", "x.plan:1:1: no plan"},
    {1, ",\"memories\"", ",\"replicas\":1,\"memories\"", "x.plan:1:60: 1 is not between 2 and 4096"},
    {1, ",\"memories\"", ",\"replicas\":4097,\"memories\"", "x.plan:1:60: 4097 is not between 2 and 4096"},
    {1, "\"name\"", "\"replicas\":2,\"name\"", "expected ...name\""},
    {1, "\"memories\":3", "\"memories\":2", "x.plan:1:60: 2 is not between 3 and 256"},
    {1, "\"memories\":3", "\"memories\":257", "x.plan:1:60: 257 is not between 3 and 256"},
    {1, "\"memories\":3", "\"memories\":4", "x.plan:1:1: the header counts 76 rows, the file has 75 lines"},
    {1, "\"memories\":3,\"links\":6", "\"memories\":4,\"links\":5", "x.plan:6:3: expected ...memory\":"},
    {1, "\"memories\":3,", "", "expected ...memories\":"},
    {1, "\"links\":6", "\"links\":-1", "-1 is not between 0 and 4096"},
    {1, "\"links\":6", "\"links\":4097", "4097 is not between 0 and 4096"},
    {1, "\"links\":6,\"graphs\":1", "\"links\":5,\"graphs\":2", "x.plan:11:3: expected ...period"},
    {1, "\"links\":6,\"graphs\":1", "\"links\":7,\"graphs\":0", "0 is not between 1 and 256"},
    {1, "\"graphs\":1", "\"graphs\":2", "x.plan:1:1: the header counts 76 rows, the file has 75 lines"},
    {1, "\"tensors\":6", "\"tensors\":7", "x.plan:1:1: the header counts 76 rows, the file has 75 lines"},
    {1, "\"jobs\":1", "\"jobs\":5000", "5000 is not between 1 and 256"},
    {1, "\"streams\":3", "\"streams\":1025", "1025 is not between 0 and 1024"},
    {1, "\"maps\":0", "\"maps\":1", "x.plan:1:1: the header counts 76 rows, the file has 75 lines"},
    {1, "\"maps\":0,", "", "expected ...maps\":"},
    {1, "\"boundary\":2,\"maps\":0", "\"boundary\":1,\"maps\":1",
     "x.plan:6:1: the memories have 0 map rows, the header counts 1"},
    {1, "\"body\":33", "\"body\":2147483647", "x.plan:1:1: the header counts 2147483689 rows, the file has 75 lines"},
    {1, "\"body\":33", "\"body\":2147483648", "2147483648 is not between 0 and 2147483647"},
    {1, "\"uses\":10", "\"uses\":2147483647", "x.plan:1:1: the header counts more than the file has room for"},
    {1, "\"uses\":10", "\"uses\":9", "x.plan:60:79: more uses than the header's 9"},
    {1, "\"uses\":10", "\"uses\":11", "the execs have 10 uses, the header counts 11"},
    {1, "\"residencies\":8", "\"residencies\":2147483647", "the header's residencies and events do not go with"},
    {1, "\"residencies\":8", "\"residencies\":1", "the header's residencies and events do not go with"},
    {1, "\"events\":7", "\"events\":47", "the header's residencies and events do not go with"},
    {1, "\"events\":7", "\"events\":6", "x.plan:61:19: 6 is not between 0 and 5"},
    {1, "\"prologue\":8,\"body\":33", "\"body\":33,\"prologue\":8", "expected ...prologue"},
    {1, "\"epilogue\":5}", "\"epilogue\":5,\"more\":1}", "expected }"},
    {1, "\"epilogue\":5}", "\"epilogue\":5} ", "expected the line's end"},
    {1, "\"script\"", "\"scr\\ipt\"", "x.plan:1:28: an escape other than"},
    {1, "\"script\"", "\"scr\\u0041ipt\"", "x.plan:1:28: an escape other than"},
    {1, "\"script\"", "\"scr\\u0000ipt\"", "x.plan:1:28: an escape other than"},
    {1, "\"script\"", "\"scr\xffipt\"", "x.plan:1:28: a string with a byte that is neither text nor an escape"},
    {1, "\"script\"", "\"scr\xc0\x80ipt\"", "neither text nor an escape"},
    {1, "\"script\"", "\"scr\xed\xa0\x80ipt\"", "neither text nor an escape"},
    {1, "\"script\"", "\"scr\tipt\"", "neither text nor an escape"},
    {1, ",\"memories\"", ",\"swap_rate\":1000001,\"memories\"", "1000001 is not between 1 and 1000000"},
    {1, ",\"memories\"", ",\"region\":2,\"memories\"", "2 is not between 256 and"},
    {1, ",\"memories\"", ",\"region\":257,\"memories\"", "regions of 257 bytes: their size must be a multiple of 256"},
    {1, ",\"memories\"", ",\"split_size\":512,\"split_groups\":3,\"memories\"", "a size or a number, not both"},
    {22, "\"stall\":9", "\"stall\":9,\"swap_rate\":0", "0 is not between 1 and 1000000"},
    /* Device. */
    {2, "\"in_flight\":2", "\"in_flight\":2147483648", "x.plan:2:"},
    {2, "\"launch\":5", "\"memory\":4096,\"launch\":5", "expected ...launch\":"},
    {2, "30000}", "30000,\"more\":1}", "expected }"},
    {2, "\"duplex\":900000", "\"duplex\":0", "0 is not between 1 and 1000000"},
    {2, "\"duplex\":900000", "\"duplex\":1000001", "1000001 is not between 1 and 1000000"},
    {2, "30000}", "2147483648}", "2147483648 is not between 0 and 2147483647"},
    /* Memories. */
    {3, "\"budget\":2560", "\"budget\":-2", "x.plan:3:50: -2 is not between -1 and 9007199254740992"},
    {3, "\"budget\":2560", "\"budget\":9007199254740993", "x.plan:3:50: the number is beyond 2^53"},
    {3, "\"budget\":2560", "\"budget\":99999999999999999999999", "x.plan:3:50: the number is beyond 2^53"},
    {3, "\"budget\":2560", "\"budget\":02560", "x.plan:3:50: the number is not in its shortest form"},
    {3, "\"budget\":2560", "\"budget\":-0", "x.plan:3:50: the number is not in its shortest form"},
    {3, "\"budget\":2560", "\"budget\":2560.0", "x.plan:3:54: expected ,\"reserved\":"},
    {3, "\"budget\":2560", "\"budget\":", "x.plan:3:50: expected an integer"},
    {3, "\"budget\":2560,", "", "expected ...budget\":"},
    {3, "\"bytes\":4096", "\"bytes\":-2", "-2 is not between -1 and"},
    {3, "\"reserved\":512", "\"reserved\":-1", "-1 is not between 0 and"},
    {3, "\"arena\":2048", "\"arena\":-1", "-1 is not between 0 and"},
    {3, "\"align\":256", "\"align\":0", "0 is not between 256 and 1073741824"},
    {3, "\"align\":256", "\"align\":128", "128 is not between 256 and 1073741824"},
    {3, "\"align\":256", "\"align\":300", "x.plan:3:94: an alignment that is not a multiple of 256"},
    {3, "\"align\":256", "\"align\":2147483648", "2147483648 is not between 256 and 1073741824"},
    {3, "\"gpu\":0", "\"gpu\":1", "x.plan:3:26: 1 is not between 0 and 0"},
    {3, "\"gpu\":0,", "", "expected ...gpu\":"},
    {3, "\"device\"", "\"disk\"", "x.plan:3:12: not \"device\", \"host\", \"storage\" or \"user\""},
    {3, "\"device\",\"gpu\":0", "\"host\"", "x.plan:3:11: memories come in the order of devices, host, storage, user"},
    {3, "\"align\":256", "\"align\":256,\"chunk\":0,\"maps\":0", "0 is not between 1 and"},
    {3, "\"align\":256", "\"align\":256,\"chunk\":256", "expected ,\"maps\":"},
    {3, "\"align\":256", "\"align\":256,\"chunk\":256,\"maps\":1", "1 is not between 0 and 0"},
    {3, "\"align\":256", "\"align\":256,\"chunk\":256,\"maps\":0,\"paged\":0", "expected }"},
    {3, "\"align\":256", "\"align\":256,\"paged\":1", "expected }"},
    {4, "\"host\"", "\"storage\"", "x.plan:4:11: memories come in the order of devices, host, storage, user"},
    {4, "\"host\"", "\"device\",\"gpu\":1", "x.plan:5:11: memories come in the order of devices, host, storage, user"},
    {4, "\"host\"", "\"host\",\"gpu\":0", "expected ...bytes\":"},
    {4, "\"align\":256", "\"align\":256,\"chunk\":256,\"maps\":0", "x.plan:4:"},
    {5, "\"user\"", "\"host\"", "x.plan:5:11: memories come in the order of devices, host, storage, user"},
    {5, "\"user\"", "\"storage\",\"bytes\":1,\"budget\":1,\"reserved\":0,\"arena\":0,\"align\":256",
     "x.plan:6:1: the user's memory is missing"},
    {5, "\"user\"", "\"user\",\"bytes\":1", "expected }"},
    /* Links. */
    {6, "[1,0]", "[3,0]", "x.plan:6:10: 3 is not between 0 and 2"},
    {6, "[1,0]", "[1,3]", "x.plan:6:12: 3 is not between 0 and 2"},
    {6, "[1,0]", "[-1,0]", "x.plan:6:10: -1 is not between 0 and 2"},
    {6, "[1,0]", "[1,0,2]", "x.plan:6:13: expected ],\"engine\":"},
    {6, "[1,0]", "[1]", "x.plan:6:11: expected ,"},
    {6, "\"engine\":0", "\"engine\":6", "x.plan:6:24: 6 is not between 0 and 5"},
    {6, "\"engine\":0", "\"engine\":-1", "x.plan:6:24: -1 is not between 0 and 5"},
    {6, "\"rate\":1000", "\"rate\":0", "x.plan:6:33: 0 is not between 1 and"},
    {6, "\"latency\":10", "\"latency\":-1", "-1 is not between 0 and"},
    {6, "\"bus\":0", "\"bus\":6", "x.plan:6:57: 6 is not between 0 and 5"},
    {6, "\"bus\":0", "\"bus\":-1", "x.plan:6:57: -1 is not between 0 and 5"},
    {6, "\"bus\":0", "\"bus\":0,\"bus\":0", "expected }"},
    {12, "\"bound\":3", "\"bound\":3,\"peak\":2560", "x.plan:12:"},
    {12, "\"bound\"", "\"ideal\":2,\"bound\"", "expected ...bound\":"},
    /* Graph. */
    {13, "71786e", "71786E", "x.plan:13:31: expected 16 hexadecimal digits"},
    {13, "71786e", "71786f", "x.plan:13:1: the row's hash 71786f472f4ab1e8 is not that of the graph, 71786e472f4ab1e8"},
    {13, "\"hash\":\"71786e472f4ab1e8\",", "", "expected ...hash\":"},
    {13, "\"NHWC\"", "\"NHCW\"", "x.plan:13:54: not \"NCHW\" or \"NHWC\""},
    {13, "\"loss\":5", "\"loss\":6", "x.plan:13:"},
    {13, "\"tensors\":6", "\"tensors\":5", "x.plan:13:87: 5 is not between -1 and 4"},
    {13, "\"ops\":2", "\"ops\":1", "x.plan:19:1: loss loss: is never produced"},
    {14, "\"x\"", "\"w\"", "x.plan:15:1: "},
    {14, "\"N\"", "\"1N\"", "x.plan:14:54: 1N is written N"},
    {14, "\"N\"", "\"8\"", "x.plan:14:55: expected N\""},
    {18, "\"of\":3", "\"of\":4", "x.plan:18:20: 4 is not between 0 and 3"},
    {18, "\"at\":\"24N\"", "\"at\":\"28N\"", "x.plan:18:1: "},
    {20, "\"in\":[0,1]", "\"in\":[0,6]", "x.plan:20:54: 6 is not between 0 and 5"},
    {20, "\"in\":[0,1]", "\"in\":[0,1,]", "x.plan:20:56: expected an integer"},
    {20, "\"axis\":-1", "\"x\":-1", "attributes stand in the order of their keys, each once"},
    {20, "\"list\"", "\"axis\"", "attributes stand in the order of their keys, each once"},
    {20, "0.5", "0.50", "not the shortest decimal of a real number"},
    {20, "0.5", "5e-1", "not the shortest decimal of a real number"},
    {20, "0.5", "1e999", "not the shortest decimal of a real number"},
    {20, "2.0", "2", "x.plan:13:1: the row's hash"},
    {20, "\"flags\":6", "\"flags\":32", "32 is not between 0 and 31"},
    {20, "\"flags\":6", "\"workspace\":0,\"flags\":6", "op f1 states that it works in no bytes"},
    {20, "\"flags\":6", "\"workspace\":-1,\"flags\":6", "x.plan:20:"},
    {20, "\"flags\":6", "\"class\":\"conv\",\"workspace\":1,\"flags\":6", "expected"},
    {20, "\"flags\":6", "\"flags\":6,\"class\":\"dear\"", "not \"conv\", \"gemm\""},
    {20, "\"flags\":6", "\"flags\":6,\"class\":\"gemm\"", "x.plan:20:224: op f1 states the class that it has anyway"},
    {21, OF_F2("t.make", ""), OF_F2("conv2d", ",\"class\":\"conv\""),
     "x.plan:21:132: op f2 states the class that it has anyway"},
    {20, "\"flags\":6", "\"flags\":4", "x.plan:13:1: the row's hash"},
    {21, "\"in\":[4]", "\"in\":[5]", "x.plan:21:1: "},
    /* Jobs, streams, boundary. */
    {22, "\"rounds\":[2]", "\"rounds\":[]", "expected an integer"},
    {22, "\"job\":0", "\"job\":1", "x.plan:22:8: 1 is not between 0 and 0"},
    {22, "[2]", "[3]", "x.plan:22:30: 3 is not between 1 and 2"},
    {22, "\"iterations\":1", "\"iterations\":0", "0 is not between 1 and"},
    {22, "\"ideal\":2", "\"ideal\":-1", "x.plan:22:56: -1 is not between 0 and"},
    {22, "\"busy\":8", "\"busy\":-1", "x.plan:22:65: -1 is not between 0 and"},
    {22, "\"stall\":9", "\"stall\":9007199254740993", "x.plan:22:75: the number is beyond 2^53"},
    {22, "\"stall\":9", "\"stall\":9,\"order\":[0,0]", "x.plan:22:88: op 0 stands twice"},
    {22, "\"stall\":9", "\"stall\":9,\"order\":[0]", "x.plan:22:87: expected ,"},
    {23, "\"compute\"", "\"computer\"", "x.plan:23:12: not \"compute\" or \"copy\""},
    {23, "\"memory\":0", "\"memory\":3", "x.plan:23:38: 3 is not between 0 and 2"},
    {23, "\"memory\":0", "\"engine\":0", "x.plan:23:30: expected ...memory\":"},
    {24, "\"copy\"", "\"h2d\"", "x.plan:24:12: not \"compute\" or \"copy\""},
    {24, "\"engine\":0", "\"engine\":6", "x.plan:24:35: 6 is not between 0 and 5"},
    {24, "\"engine\":0", "\"memory\":0", "x.plan:24:27: expected ...engine\":"},
    {24, "\"job\":0", "\"job\":1", "1 is not between 0 and 0"},
    {28, "\"boundary\":1", "\"boundary\":-1", "x.plan:28:13: -1 is not between 0 and"},
    {28, "\"m\":0", "\"m\":3", "x.plan:28:19: 3 is not between 0 and 2"},
    {28, "\"m\":0,", "", "expected ...m\":"},
    {28, "\"at\":0", "\"at\":-1", "-1 is not between 0 and"},
    /* Instructions. */
    {30, "acquire", "require", "x.plan:30:7: not an instruction"},
    {30, "acquire", "move", "x.plan:30:7: not an instruction"},
    {32, "copy", "prefetch", "x.plan:32:7: not an instruction"},
    {30, "\"r\":0", "\"r\":8", "x.plan:30:20: 8 is not between 0 and 7"},
    {30, "\"r\":0", "\"r\":-1", "x.plan:30:20: -1 is not between 0 and 7"},
    {30, "\"m\":0", "\"m\":3", "3 is not between 0 and 2"},
    {30, "\"m\":0", "\"m\":-1", "-1 is not between 0 and 2"},
    {30, "\"m\":0,", "", "expected ...m\":"},
    {30, "\"at\":0", "\"at\":-1", "-1 is not between 0 and"},
    {44, "\"a\":0", "\"a\":2", "2 is not between 0 and 1"},
    {44, "\"s\":0", "\"s\":3", "3 is not between 0 and 2"},
    {44, "[2,0,1,3]", "[2,0,1,8]", "8 is not between -1 and 7"},
    {44, "[2,0,1,3]", "[2, 0,1,3]", "expected an integer"},
    {44, "\"a\":0", "\"re\":0,\"a\":0", "expected ...a\":"},
    {45, "\"re\":1", "\"re\":2", "expected ...a\":"},
    {49, "\"r\":4", "\"r\":8", "x.plan:49:17: 8 is not between -1 and 7"},
    {49, "\"r\":4", "\"r\":-2", "x.plan:49:17: -2 is not between -1 and 7"},
    {49, "\"from\":3", "\"from\":8", "x.plan:49:26: 8 is not between -1 and 7"},
    {49, "\"from\":3", "\"from\":-2", "x.plan:49:26: -2 is not between -1 and 7"},
    {49, "\"from\":3", "\"h\":0", "expected ...from\":"},
    {49, "\"bytes\"", "\"peers\":0,\"bytes\"", "expected ...bytes\":"},
    {49, "\"from\"", "\"peers\":1,\"from\"", "expected ...from\":"},
    {49, "\"s\":2", "\"s\":3", "3 is not between 0 and 2"},
    {38, "\"lag\":1", "\"lag\":2", "expected ...s\":"},
    {38, "\"lag\":1", "\"lag\":0", "x.plan:38:18: a lag of 0, which is left out: plan again"},
    {38, "\"lag\":1", "\"lag\":1,\"peers\":2", "expected ...s\":"},
    {22, "\"stall\":9", "\"stall\":9,\"replicas\":2", "expected }"},
    {75, "{\"i\"", "\n{\"i\"", "x.plan:1:1: the header counts 75 rows, the file has 76 lines"},
};

START_TEST(a_zero_byte_is_part_of_no_number) {
  size_t length;
  char *text = read_small(&length);
  size_t before = 0;
  while (before < length && strncmp(text + before, "1e-05,", 6) != 0) before++;
  ck_assert_uint_lt(before, length);
  before += 5;
  char *changed = calloc(length + 1, 1);
  ck_assert_ptr_nonnull(changed);
  memcpy(changed, text, before);
  memcpy(changed + before + 1, text + before, length - before);
  planc_plan *plan;
  assert_fails(planc_plan_parse(changed, length + 1, "x.plan", &plan), PLANC_BAD_INPUT, "x.plan:20:");
  free(changed);
  free(text);
}
END_TEST

START_TEST(an_edit_is_refused_with_its_place) {
  size_t length;
  char *text = read_small(&length), *line = text;
  for (int n = 1; n < edits[_i].line; n++) line = strchr(line, '\n') + 1;
  char *at = strstr(line, edits[_i].find);
  ck_assert_ptr_nonnull(at);
  size_t size = length + strlen(edits[_i].replace) + 1;
  char *changed = malloc(size);
  ck_assert_ptr_nonnull(changed);
  int made =
      snprintf(changed, size, "%.*s%s%s", (int)(at - text), text, edits[_i].replace, at + strlen(edits[_i].find));
  planc_plan *plan;
  planc_status status = planc_plan_parse(changed, (size_t)made, "x.plan", &plan);
  ck_assert_ptr_null(plan);
  assert_fails(status, PLANC_BAD_INPUT, edits[_i].message);
  free(changed);
  free(text);
}
END_TEST

START_TEST(a_part_of_a_file_is_refused) {
  size_t length;
  char *text = read_small(&length);
  for (size_t n = 0; n < length; n++) {
    planc_plan *plan;
    /* Nothing behind the part may be read, which a copy of just its size lets the sanitizers see. */
    char *part = malloc(n + 1);
    ck_assert_ptr_nonnull(part);
    memcpy(part, text, n);
    planc_status status = planc_plan_parse(part, n, "x.plan", &plan);
    ck_assert_msg(planc_status_code(status) == PLANC_BAD_INPUT, "the first %zu bytes are read as a plan", n);
    planc_status_free(status);
    free(part);
  }
  free(text);
}
END_TEST

/* There is one form: whatever is read prints as the bytes that were read. */
START_TEST(changed_text_is_refused_or_canonical) {
  size_t length;
  char *text = read_small(&length);
  int accepted = 0, refused = 0;
  for (uint64_t seed = 0; seed < 20000; seed++) {
    char *changed, *again, description[64];
    size_t changed_length, again_length;
    planc_plan *plan;
    ok(mutate_text(text, length, seed, &changed, &changed_length, description, sizeof description));
    planc_status status = planc_plan_parse(changed, changed_length, "x.plan", &plan);
    if (!status) {
      accepted++;
      ok(planc_plan_print(plan, &again, &again_length));
      ck_assert_uint_eq(changed_length, again_length);
      ck_assert_mem_eq(changed, again, again_length);
      planc_status_free(planc_check(plan, NULL, NULL));
      planc_plan_free(plan);
      free(again);
    } else {
      refused++;
      ck_assert_int_eq(planc_status_code(status), PLANC_BAD_INPUT);
      ck_assert_msg(strncmp(planc_status_message(status), "x.plan:", 7) == 0, "%s", planc_status_message(status));
    }
    planc_status_free(status);
    free(changed);
  }
  ck_assert_int_gt(accepted, 1000);
  ck_assert_int_gt(refused, 10000);
  free(text);
}
END_TEST

START_TEST(files_that_cannot_be_read_are_named) {
  planc_plan *plan;
  const char *const paths[] = {"tests/data/plan/absent.plan", "tests/data"};
  for (int i = 0; i < 2; i++) {
    planc_status status = planc_plan_read(paths[i], &plan);
    assert_fails(status, PLANC_BAD_INPUT, paths[i]);
  }
}
END_TEST

int main(void) {
  Suite *suite = suite_create("plan_refused");
  TCase *cases = tcase_create("all");
  tcase_set_timeout(cases, 60);
  tcase_add_loop_test(cases, an_edit_is_refused_with_its_place, 0, sizeof edits / sizeof *edits);
  tcase_add_test(cases, a_zero_byte_is_part_of_no_number);
  tcase_add_test(cases, a_part_of_a_file_is_refused);
  tcase_add_test(cases, changed_text_is_refused_or_canonical);
  tcase_add_test(cases, files_that_cannot_be_read_are_named);
  suite_add_tcase(suite, cases);
  return run_suite(suite);
}
