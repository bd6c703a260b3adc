/* Sizes and times as people write and read them. */
#include <check.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/unit.h"
#include "util/size.h"

static const struct parsed {
  const char *text;
  int64_t bytes;
} sizes[] = {
    {"0", 0},
    {"1", 1},
    {"1B", 1},
    {"007", 7},
    {"1K", 1024},
    {"1KiB", 1024},
    {"1KB", 1000},
    {"12G", INT64_C(12884901888)},
    {"12GiB", INT64_C(12884901888)},
    {"12GB", INT64_C(12000000000)},
    {"3M", 3 << 20},
    {"3MB", 3000000},
    {"2T", INT64_C(2) << 40},
    {"2TB", INT64_C(2000000000000)},
    {"1.5G", INT64_C(1610612736)},
    {"1.5GB", INT64_C(1500000000)},
    {"0.1K", 102},
    {".5K", 512},
    {"1.K", 1024},
    {"0.9999999999K", 1023},
    {"0.000000001T", 1099}, /* ten digits behind the point are still bytes */
    {"0.0000000001T", 109},
    {"0.0000000000009094947017729282379150390625T", 0}, /* a byte, but for what is beyond the eighteenth digit */
    {"0.00000000000091T", 1},
    {"0.999B", 0},
    {"9223372036854775807", INT64_MAX},
    {"8388607T", INT64_C(8388607) << 40},
    {"8388607.9T", INT64_C(9223371926903613030)},
};

START_TEST(a_size_is_read) {
  const struct parsed *size = &sizes[_i];
  int64_t bytes = -1;
  planc_status status = pl_size_parse(size->text, &bytes);
  ck_assert_msg(!status, "%s: %s", size->text, planc_status_message(status));
  ck_assert_msg(bytes == size->bytes, "%s gave %" PRId64, size->text, bytes);
}
END_TEST

static const char *const wrong[] = {
    "",
    "B",
    "G",
    ".",
    "1.5.5",
    "-1",
    "+1",
    " 1",
    "1 ",
    "1 K",
    "1e9",
    "0x10",
    "1k",
    "1Kib",
    "1KIB",
    "1Ki",
    "1KBB",
    "1P",
    "1BB",
    "1iB",
    "1,5G",
    "nan",
    "inf",
    "12GiBx",
    "1.5.G",
    "..5G",
    "1G1",
    "one",
    "\xff",
    "1\n",
    "B1",
    "K1",
    "9223372036854775808", /* 2^63 */
    "8388608T",            /* 2^63 */
    "18446744073709551617",
    "99999999999999999999999999G",
};

START_TEST(anything_else_is_wrong_use_and_quoted) {
  int64_t bytes = 77;
  planc_status status = pl_size_parse(wrong[_i], &bytes);
  ck_assert_msg(status, "%s gave %" PRId64, wrong[_i], bytes);
  ck_assert_int_eq(planc_status_code(status), PLANC_USAGE);
  ck_assert_ptr_nonnull(strstr(planc_status_message(status), wrong[_i]));
  ck_assert_int_eq(bytes, 77);
  planc_status_free(status);
}
END_TEST

static const struct shown {
  int64_t bytes;
  const char *text;
} shown[] = {
    {0, "0 B"},
    {1023, "1023 B"},
    {1024, "1.00 KiB"},
    {1536, "1.50 KiB"},
    {(1 << 20) - 1, "1.00 MiB"}, /* the nearest hundredth */
    {(1 << 20) - 6 * 1024, "1018.00 KiB"},
    {INT64_C(2093796556), "1.95 GiB"}, /* 1.95G, a fraction of a byte dropped */
    {1 << 20, "1.00 MiB"},
    {INT64_C(12884901888), "12.00 GiB"},
    {INT64_C(1) << 40, "1.00 TiB"},
    {INT64_MAX, "8388608.00 TiB"},
};

START_TEST(a_size_is_shown) {
  char text[PL_SIZE_TEXT];
  ck_assert_str_eq(pl_size_format(shown[_i].bytes, text), shown[_i].text);
}
END_TEST

/* Two decimals are shown, so what is read back is at most half a hundredth of the unit off, and a byte. */
START_TEST(what_is_shown_can_be_read) {
  uint64_t random = 1;
  for (int i = 0; i < 10000; i++) {
    random = random * 6364136223846793005u + 1442695040888963407u;
    int64_t bytes = (int64_t)(random >> (1 + random % 63)), again;
    char text[PL_SIZE_TEXT], compact[PL_SIZE_TEXT];
    pl_size_format(bytes, text);
    char *space = strchr(text, ' ');
    ck_assert_ptr_nonnull(space);
    snprintf(compact, sizeof compact, "%.*s%s", (int)(space - text), text, space + 1);
    ck_assert_ptr_null(pl_size_parse(compact, &again));
    int64_t unit = 1;
    while (unit < INT64_C(1) << 40 && bytes / unit >= 1024) unit *= 1024;
    ck_assert_msg(llabs(bytes - again) <= unit / 200 + 1, "%" PRId64 " shown as %s", bytes, text);
  }
}
END_TEST

START_TEST(a_time_is_shown_in_milliseconds) {
  char text[PL_SIZE_TEXT];
  ck_assert_str_eq(pl_time_format(0, text), "0.000 ms");
  ck_assert_str_eq(pl_time_format(999, text), "0.000 ms");
  ck_assert_str_eq(pl_time_format(1000, text), "0.001 ms");
  ck_assert_str_eq(pl_time_format(12345678, text), "12.345 ms");
  ck_assert_str_eq(pl_time_format(INT64_MAX, text), "9223372036854.775 ms");
}
END_TEST

static const struct time_text {
  const char *text;
  int64_t ns; /* -1 = it is no time */
} times[] = {{"50ms", 50000000},
             {"1.5s", 1500000000},
             {".5us", 500},
             {"200us", 200000},
             {"7ns", 7},
             {"1.9ns", 1},
             {"0s", 0},
             {"0", 0},
             {"0.0", 0},
             {".", -1},
             {"0.1", -1},
             {"0m", -1},
             {"9223372036s", INT64_C(9223372036000000000)},
             {"9223372037s", -1},
             {"99999999999999999999ns", -1},
             {"", -1},
             {"ms", -1},
             {".s", -1},
             {"5", -1},
             {"5m", -1},
             {"5 ms", -1},
             {"-5ms", -1},
             {"5MS", -1}};

START_TEST(a_time_is_read) {
  int64_t ns = 77;
  planc_status status = pl_time_parse(times[_i].text, &ns);
  ck_assert_msg(!status == (times[_i].ns >= 0), "%s", times[_i].text);
  ck_assert_int_eq(ns, status ? 77 : times[_i].ns);
  if (status) ck_assert_int_eq(planc_status_code(status), PLANC_USAGE);
  planc_status_free(status);
}
END_TEST

int main(void) {
  TCase *tests = tcase_create("size");
  tcase_add_loop_test(tests, a_time_is_read, 0, sizeof times / sizeof *times);
  tcase_add_loop_test(tests, a_size_is_read, 0, sizeof sizes / sizeof *sizes);
  tcase_add_loop_test(tests, anything_else_is_wrong_use_and_quoted, 0, sizeof wrong / sizeof *wrong);
  tcase_add_loop_test(tests, a_size_is_shown, 0, sizeof shown / sizeof *shown);
  tcase_add_test(tests, what_is_shown_can_be_read);
  tcase_add_test(tests, a_time_is_shown_in_milliseconds);
  Suite *suite = suite_create("size");
  suite_add_tcase(suite, tests);
  return run_suite(suite);
}
