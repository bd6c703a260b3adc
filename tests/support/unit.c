#include "tests/support/unit.h"

#include <stdlib.h>
#include <string.h>

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

/* Limits of time are there to end what hangs. A slow machine is not why a test fails: check's own 4 s, and what suites
 * state, count so many times. */
__attribute__((constructor)) static void be_patient(void) {
  setenv("CK_TIMEOUT_MULTIPLIER", "300", 0);
}

int run_suite(Suite *suite) {
  SRunner *runner = srunner_create(suite);
  srunner_run_all(runner, CK_ENV);
  int failed = srunner_ntests_failed(runner);
  srunner_free(runner);
  return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
