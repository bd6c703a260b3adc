/* Two and three real jobs in less than the sum of what they need alone: each comes to the bits that it comes to alone,
 * with streams at once under random delays, and memory poisoned when it is acquired. */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "planc/check.h"
#include "planc/colocate.h"
#include "planrt/planrt.h"
#include "tests/support/runs.h"
#include "tests/support/unit.h"

enum { PERIODS = 2, MOST_JOBS = 3 };

/* --- Mixes -------------------------------------------------------------------------------------------------------- */

typedef struct real_job {
  const char *graph; /* NULL: none */
  int64_t batch;
  int32_t iterations;
} real_job;

/* ResNet-110, whose iterations have many ops, is not with every policy. */
typedef struct real_mix {
  const char *policy;
  real_job jobs[MOST_JOBS];
  bool beside; /* jobs run beside each other, and get more done than in turns */
} real_mix;

#define LENET "lenet-digits", 256
#define SMALL_LENET "lenet-digits", 150
#define TRANSFORMER "tiny-transformer", 32
#define LSTM "gnmt-small", 32
#define RESNET "resnet110", 4
static const real_mix mixes[] = {
    {"temporal", {{LENET, 2}, {TRANSFORMER, 1}}, false},
    {"zico", {{LENET, 2}, {TRANSFORMER, 1}}, true},
    {"waterwave", {{LENET, 2}, {TRANSFORMER, 1}}, true},
    {"waterwave-s", {{LENET, 2}, {TRANSFORMER, 1}}, false},
    {"tensile", {{LENET, 2}, {TRANSFORMER, 1}}, false},
    {"capuchin", {{LSTM, 2}, {RESNET, 1}}, false},
    {"temporal", {{LSTM, 2}, {LENET, 1}, {SMALL_LENET, 3}}, false},
    {"zico", {{LENET, 2}, {TRANSFORMER, 1}, {LSTM, 3}}, false},
    {"waterwave", {{LENET, 2}, {TRANSFORMER, 1}, {SMALL_LENET, 3}}, true},
    {"waterwave-s", {{LENET, 2}, {LSTM, 1}, {SMALL_LENET, 3}}, false},
    {"tensile", {{LENET, 2}, {TRANSFORMER, 1}, {LSTM, 3}}, false},
    {"zico", {{RESNET, 1}, {LSTM, 4}}, false},
    {"tensile", {{LENET, 3}, {RESNET, 1}}, false},
    {"waterwave", {{RESNET, 1}, {LENET, 3}, {LSTM, 2}}, false},
};
enum { N_MIXES = sizeof mixes / sizeof *mixes, N_POLICIES = 6 /* the first mixes are one of each */ };

/* What is planned with: by graph, made once. */
static const char *const names[] = {"lenet-digits", "tiny-transformer", "gnmt-small", "resnet110"};
static const int64_t profiled[] = {256, 32, 32, 4};
enum { N_GRAPHS = sizeof names / sizeof *names };
static planc_profile *profiles[N_GRAPHS];

/* A profile of this build's planrun has algorithms that a host is quick with. Its times are replaced: plans do not
 * depend on the machine. */
#define SAME_TIMES                                                          \
  "sed -E 's/(\"(time|latency|launch)_ns\":[[:space:]]*)[0-9]+/\\1100000/;" \
  "s/(\"bytes_per_second\":[[:space:]]*)[0-9]+/\\110000000000/;"            \
  "s/(\"busy_ppm\":[[:space:]]*)[0-9]+/\\1500000/'"
static void measure(const char *graph, int64_t batch, planc_profile **out) {
  char self[512], path[64], command[1024];
  ssize_t length = readlink("/proc/self/exe", self, sizeof self - 1);
  ck_assert_int_gt(length, 0);
  self[length] = 0;
  for (int up = 0; up < 2; up++) *strrchr(self, '/') = 0;
  snprintf(path, sizeof path, "/tmp/planc-real-mixes-%ld.json", (long)getpid());
  snprintf(command, sizeof command,
           "%s/planrun profile graphs/%s.yaml --batches %lld -r 1 --most 1 -o - 2>/dev/null | " SAME_TIMES " >%s", self,
           graph, (long long)batch, path);
  ck_assert_int_eq(system(command), 0); /* NOLINT(cert-env33-c): the test's own words */
  ok(planc_profile_read(path, out));
  unlink(path);
}

static void measure_all(void) {
  for (int g = 0; g < N_GRAPHS; g++) measure(names[g], profiled[g], &profiles[g]);
}
static void free_profiles(void) {
  for (int g = 0; g < N_GRAPHS; g++) planc_profile_free(profiles[g]);
}

static void read_job(const real_job *from, planc_graph **out_graph, planc_workload *out) {
  char path[64];
  const char *derived;
  int g = 0;
  while (strcmp(names[g], from->graph) != 0) g++;
  snprintf(path, sizeof path, "graphs/%s.yaml", from->graph);
  ok(planc_graph_prepare(path, NULL, false, out_graph, &derived));
  *out = (planc_workload){.graph = *out_graph, .profile = profiles[g], .batch = from->batch};
}

/* --- Running ------------------------------------------------------------------------------------------------------ */

static void run_real(const planc_plan *plan, planrt_options options, int64_t periods, planrt_session **out) {
  options.seed = 5;
  options.feed = feed_numbers;
  ok(planrt_session_new(plan, &options, out));
  ok(planrt_init(*out));
  ok(planrt_run(*out, periods));
}

/* What persists of a job, and the job alone, to compare. */
static void assert_job_same(const planrt_session *together, int32_t job, const planrt_session *alone,
                            const planc_graph *graph) {
  int64_t compared = 0;
  for (int32_t s = 0; s < graph->n_storages; s++) {
    int64_t bytes = graph->storages[s].bytes.fixed;
    if (!planc_kind_persists(graph->storages[s].kind)) continue;
    char *of_a = malloc((size_t)bytes), *of_b = malloc((size_t)bytes);
    ok(planrt_read(together, 0, job, s, of_a, bytes));
    ok(planrt_read(alone, 0, 0, s, of_b, bytes));
    ck_assert_msg(memcmp(of_a, of_b, (size_t)bytes) == 0, "job %d, storage %d differs", job, s);
    compared += bytes;
    free(of_a);
    free(of_b);
  }
  ck_assert_int_gt(compared, 1000);
}

/* --- Tests -------------------------------------------------------------------------------------------------------- */

START_TEST(real_jobs_come_to_what_they_come_to_alone) {
  if (_i >= N_POLICIES && !is_sampled(_i, 4)) return;
  const real_mix *of = &mixes[_i];
  int32_t iterations[MOST_JOBS];
  planc_workload jobs[MOST_JOBS];
  planc_graph *graphs[MOST_JOBS];
  planc_plan *alone[MOST_JOBS], *plan;
  planrt_session *together, *session;
  planc_mix_share shares[MOST_JOBS];
  planc_mix mix = {.terms.budgets = {INT64_C(1) << 32, -1}, .jobs = jobs, .iterations = iterations};
  int64_t sum = 0;
  for (; mix.n_jobs < MOST_JOBS && of->jobs[mix.n_jobs].graph; mix.n_jobs++) {
    int32_t j = mix.n_jobs;
    read_job(&of->jobs[j], &graphs[j], &jobs[j]);
    iterations[j] = of->jobs[j].iterations;
    const planc_problem problem = planc_mix_problem(&mix, j);
    ok(planc_make_plan(&problem, planc_policy_find("none"), &alone[j]));
    sum += alone[j]->predicted.peak_bytes[PLANC_MEMORY_DEVICE];
  }
  mix.terms.budgets[PLANC_MEMORY_DEVICE] = sum * 4 / 5;
  mix.terms.settings.region = 4096;
  ok(planc_mix_resolve(&mix, shares));
  ok(planc_colocate(&mix, planc_mix_policy_find(of->policy), shares, &plan));
  ok(planc_check(plan, NULL, NULL));
  if (of->beside) ck_assert_int_gt(planc_mix_throughput(shares, mix.n_jobs), 1100000);
  const planrt_options disturbed = {.concurrent = true, .jitter = (uint64_t)_i + 1, .verify = true, .poison = true};
  run_real(plan, disturbed, PERIODS, &together);
  for (int32_t j = 0; j < mix.n_jobs; j++) {
    ck_assert_int_eq(plan->jobs[j].n_rounds, 1);
    run_real(alone[j], (planrt_options){0}, (int64_t)PERIODS * iterations[j], &session);
    assert_job_same(together, j, session, graphs[j]);
    planrt_session_free(session);
    planc_plan_free(alone[j]);
  }
  planrt_session_free(together);
  planc_plan_free(plan);
  for (int32_t j = 0; j < mix.n_jobs; j++) planc_graph_free(graphs[j]);
}
END_TEST

int main(void) {
  Suite *suite = suite_create("real_mixes");
  TCase *cases = tcase_create("all");
  tcase_add_unchecked_fixture(cases, measure_all, free_profiles);
  tcase_set_timeout(cases, 1800);
  tcase_add_loop_test(cases, real_jobs_come_to_what_they_come_to_alone, 0, N_MIXES);
  suite_add_tcase(suite, cases);
  return run_suite(suite);
}
