/* What the interpreter costs: CPU time of a plan with everything resident, replayed in file order and with concurrent
 * streams, against a bare loop over the same kernels.
 *
 *   interpreter_cost PLAN ITERATIONS REPETITIONS       prints one line of JSON */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "planc/plan.h"
#include "runtime/session.h"
#include "util/ascending.h"

static int64_t cpu_ns(void) {
  struct timespec now;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return now.tv_sec * INT64_C(1000000000) + now.tv_nsec;
}

static void ok(planc_status status) {
  if (!status) return;
  fprintf(stderr, "interpreter: %s\n", planc_status_message(status));
  exit(1);
}

static planrt_session *open_session(const planc_plan *plan, bool concurrent, bool verify) {
  planrt_session *session;
  planrt_options options = {.concurrent = concurrent, .verify = verify};
  ok(planrt_session_new(plan, &options, &session));
  ok(planrt_init(session));
  return session;
}

static int64_t time_plan(planrt_session *session, int64_t iterations) {
  int64_t begin = cpu_ns();
  ok(planrt_run(session, iterations));
  return cpu_ns() - begin;
}

/* The reference is that loop: every buffer resident, calls in the trace's order. */
static int64_t time_loop(planrt_session *session, int64_t iterations) {
  rt_launch launch = {.step = planrt_get_step(session)};
  ok(rt_resident_load(session->reference, session));
  int64_t begin = cpu_ns();
  for (int64_t i = 0; i < iterations; i++, launch.step.period++)
    ok(rt_resident_run(session->reference, session, &launch, session->feed, session->feed_user, NULL, NULL));
  return cpu_ns() - begin;
}

int main(int argc, char **argv) {
  enum { MOST = 99 };
  if (argc != 4) return 2;
  int64_t iterations = strtoll(argv[2], NULL, 10);
  int repetitions = atoi(argv[3]);
  if (repetitions < 1 || repetitions > MOST) return 2;
  planc_plan *plan;
  ok(planc_plan_read(argv[1], &plan));
  planrt_session *loop = open_session(plan, false, true), *sequential = open_session(plan, false, false),
                 *concurrent = open_session(plan, true, false);
  int64_t loop_ns[MOST], sequential_ns[MOST], concurrent_ns[MOST];
  /* The first round warms up and is overwritten. */
  for (int r = -1; r < repetitions; r++) {
    int at = r < 0 ? 0 : r;
    loop_ns[at] = time_loop(loop, iterations);
    sequential_ns[at] = time_plan(sequential, iterations);
    concurrent_ns[at] = time_plan(concurrent, iterations);
  }
  qsort(loop_ns, (size_t)repetitions, sizeof *loop_ns, pl_ascending);
  qsort(sequential_ns, (size_t)repetitions, sizeof *sequential_ns, pl_ascending);
  qsort(concurrent_ns, (size_t)repetitions, sizeof *concurrent_ns, pl_ascending);
  printf("{\"loop_ns\":%lld,\"sequential_ns\":%lld,\"concurrent_ns\":%lld}\n",
         (long long)loop_ns[repetitions / 2] / iterations, (long long)sequential_ns[repetitions / 2] / iterations,
         (long long)concurrent_ns[repetitions / 2] / iterations);
  planrt_session_free(loop);
  planrt_session_free(sequential);
  planrt_session_free(concurrent);
  planc_plan_free(plan);
  return 0;
}
