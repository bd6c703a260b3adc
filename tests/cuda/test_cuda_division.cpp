/* Division by launch constants, where tensors are larger than a test can make them. */
#include <check.h>

#include "runtime/cuda/kernels/common.cuh"
#include "runtime/random.h"

static uint64_t draws;
/* Numbers of every size. */
static int64_t draw() {
  uint64_t bits = planrt_random(3, draws++);
  return static_cast<int64_t>(bits >> 1 >> bits % 63);
}

static void check_division(int64_t n, int64_t by) {
  planrt::Divisor divisor(by);
  int64_t rest = n, quotient = divisor.split(rest);
  if (quotient != n / by || rest != n % by || divisor.quotient(n) != n / by)
    ck_abort_msg("%lld / %lld gives %lld rest %lld", static_cast<long long>(n), static_cast<long long>(by),
                 static_cast<long long>(quotient), static_cast<long long>(rest));
}

START_TEST(random_numbers) {
  for (int i = 0; i < 200000; i++) check_division(draw(), draw() | 1);
  for (int i = 0; i < 200000; i++) check_division(draw(), draw() / 2 + 1);
}
END_TEST

START_TEST(edges) {
  for (int bit = 0; bit < 63; bit++)
    for (int64_t below = -1; below <= 1; below++) {
      int64_t by = (int64_t{1} << bit) + below;
      if (by < 1) continue;
      for (int64_t n : {int64_t{0}, by - 1, by, INT64_MAX - 1, INT64_MAX, INT64_MAX / by * by, INT64_MAX / by * by - 1})
        check_division(n, by);
    }
}
END_TEST

int main() {
  Suite *suite = suite_create("cuda division");
  TCase *c = tcase_create("cuda division");
  tcase_add_test(c, random_numbers);
  tcase_add_test(c, edges);
  suite_add_tcase(suite, c);
  SRunner *runner = srunner_create(suite);
  srunner_run_all(runner, CK_NORMAL);
  int failed = srunner_ntests_failed(runner);
  srunner_free(runner);
  return failed ? 1 : 0;
}
