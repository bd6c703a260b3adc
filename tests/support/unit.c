#include "tests/support/unit.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

void ok(planc_status status) {
  ck_assert_msg(!status, "%s", planc_status_message(status));
}

void ok_in(planc_status status, const char *what) {
  ck_assert_msg(!status, "%s: %s", what, planc_status_message(status));
}

void assert_fails(planc_status status, planc_code code, const char *part) {
  ck_assert_msg(status != NULL, "no failure, expected \"%s\"", part);
  ck_assert_msg(planc_status_code(status) == code, "code %d, expected %d: %s", planc_status_code(status), code,
                planc_status_message(status));
  ck_assert_msg(strstr(planc_status_message(status), part) != NULL, "\"%s\" lacks \"%s\"", planc_status_message(status),
                part);
  planc_status_free(status);
}

enum { LEAST_SAMPLES = 4 };

static bool takes_all(void) {
  const char *samples = getenv("SAMPLES");
  return samples && strcmp(samples, "all") == 0;
}

int sampled(int cases) {
  int part = cases / 8 > LEAST_SAMPLES ? cases / 8 : LEAST_SAMPLES;
  return takes_all() || cases < part ? cases : part;
}

bool is_sampled(int number, int part) {
  return takes_all() || number % part == 0;
}

/* Limits of time are there to end what hangs. A slow machine is not why a test fails: check's own 4 s, and what suites
 * state, count so many times. */
__attribute__((constructor)) static void be_patient(void) {
  setenv("CK_TIMEOUT_MULTIPLIER", "300", 0);
}

/* check would write to a file that an assertion held, each time, to be able to say where a test was when it crashed. It
 * is told when one crashes. */
static _Thread_local const char *held_file;
static _Thread_local int held_line;
extern void __real__mark_point(const char *file, int line);
void __wrap__mark_point(const char *file, int line);

void __wrap__mark_point(const char *file, int line) {
  held_file = file;
  held_line = line;
}

static void tell_where(int number) {
  enum { PATIENCE_S = 10 };
  alarm(PATIENCE_S); /* what crashed may have locked what this needs */
  if (held_file) __real__mark_point(held_file, held_line);
  raise(number); /* it has its own effect again */
}

static void tell_of_crashes(void) {
  static const int numbers[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT};
  struct sigaction action = {.sa_flags = (int)SA_RESETHAND | SA_NODEFER};
  action.sa_handler = tell_where;
  for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) sigaction(numbers[i], &action, NULL);
}

int run_suite(Suite *suite) {
  tell_of_crashes();
  SRunner *runner = srunner_create(suite);
  srunner_run_all(runner, CK_ENV);
  int failed = srunner_ntests_failed(runner);
  srunner_free(runner);
  return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
