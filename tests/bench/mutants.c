/* Mutants of one plan: the checker rejects each, or it computes the reference's bits in any order that its events
 * allow, with none to three bodies.
 *
 *   mutants PLAN MUTANTS INTERLEAVINGS [between]   of changes to what keeps several jobs apart; prints one line of
 * JSON; exit 1 at the first that is neither */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "planc/check.h"
#include "planrt/planrt.h"
#include "tests/support/mutate.h"

enum { MOST_BODIES = 3 };

static void ok(planc_status status, const char *what) {
  if (!status) return;
  fprintf(stderr, "mutants: %s: %s\n", what, planc_status_message(status));
  exit(1);
}

/* `unchecked`: the checker's judgement is what is tested. */
static void run(const planc_plan *plan, int64_t interleavings, const char *description) {
  planrt_options options = {.synthetic = true, .verify = true, .unchecked = true};
  planrt_session *session;
  ok(planrt_session_new(plan, &options, &session), description);
  ok(planrt_init(session), description);
  for (uint64_t seed = 0; seed < (uint64_t)interleavings; seed++) {
    ok(planrt_run_interleaved(session, (int64_t)(seed % (MOST_BODIES + 1)), seed), description);
  }
  planrt_session_free(session);
}

int main(int argc, char **argv) {
  bool between = argc == 5 && strcmp(argv[4], "between") == 0;
  if (argc != 4 && !between) {
    fprintf(stderr, "usage: mutants PLAN MUTANTS INTERLEAVINGS [between]\n");
    return 2;
  }
  int64_t n = strtoll(argv[2], NULL, 10), interleavings = strtoll(argv[3], NULL, 10), accepted = 0;
  planc_plan *plan;
  ok(planc_plan_read(argv[1], &plan), argv[1]);
  ok(planc_check(plan, NULL, NULL), argv[1]);
  for (uint64_t seed = 0; seed < (uint64_t)n; seed++) {
    planc_plan *mutant;
    char description[256];
    ok((between ? mutate_between_jobs : mutate_plan)(plan, seed, &mutant, description, sizeof description), "mutate");
    planc_status status = planc_check(mutant, NULL, NULL);
    if (!status) {
      accepted++;
      run(mutant, interleavings, description);
    }
    planc_status_free(status);
    planc_plan_free(mutant);
  }
  planc_plan_free(plan);
  printf("{\"mutants\":%lld,\"accepted\":%lld,\"interleavings\":%lld}\n", (long long)n, (long long)accepted,
         (long long)interleavings);
  return 0;
}
