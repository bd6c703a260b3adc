/* Division by launch constants, where tensors are larger than a test can make them. */
#include <check.h>

#include <limits>

#include "runtime/cuda/kernels/common.cuh"
#include "runtime/random.h"

static uint64_t draws;
/* Numbers of every size. */
static int64_t draw() {
  uint64_t bits = rt_random(3, draws++);
  return static_cast<int64_t>(bits >> 1 >> bits % 63);
}

template <typename Index>
static void check_division(Index n, int64_t by) {
  planrt::DivisorOf<Index> divisor(by);
  Index rest = n, quotient = divisor.split(rest);
  if (quotient != n / by || rest != n % by || divisor.quotient(n) != n / by)
    ck_abort_msg("%lld / %lld gives %lld rest %lld", static_cast<long long>(n), static_cast<long long>(by),
                 static_cast<long long>(quotient), static_cast<long long>(rest));
}

START_TEST(random_numbers) {
  for (int i = 0; i < 200000; i++) {
    int64_t n = draw(), by = i % 2 ? draw() | 1 : draw() / 2 + 1;
    check_division<int64_t>(n, by);
    check_division<int32_t>(static_cast<int32_t>(n & INT32_MAX), (by & INT32_MAX) | 1);
  }
}
END_TEST

/* Numerators about the ends of the type and about multiples of the divisor. */
template <typename Index>
static void check_edges(int64_t by) {
  constexpr Index LARGEST = std::numeric_limits<Index>::max();
  for (Index near = 0; near < 40; near++) {
    check_division<Index>(near, by);
    check_division<Index>(LARGEST - near, by);
  }
  Index d = static_cast<Index>(by), most = LARGEST / d;
  for (Index times : {Index{1}, Index{2}, Index(most / 2), Index(most - 1), most})
    for (Index near = -1; near <= 1; near++)
      if (times > 0 && times <= most && (near < 1 || times * d < LARGEST)) check_division<Index>(times * d + near, by);
}

template <typename Index>
static void check_powers() {
  for (int bit = 0; bit < std::numeric_limits<Index>::digits; bit++)
    for (int64_t below = -3; below <= 3; below++) {
      int64_t by = (int64_t{1} << bit) + below;
      if (by >= 1 && by <= std::numeric_limits<Index>::max()) check_edges<Index>(by);
    }
  check_edges<Index>(std::numeric_limits<Index>::max());
}

START_TEST(edges) {
  check_powers<int64_t>();
  check_powers<int32_t>();
  for (int64_t by = 1; by < 3000; by++) {
    check_edges<int64_t>(by);
    check_edges<int32_t>(by);
    check_edges<int32_t>(INT32_MAX - by);
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
