/* Lifespans of random plans that keep everything on the device against what the trace says of each buffer: it lives
 * from the start of the first op or copy that has it to the end of the last. */
#include <check.h>
#include <stdlib.h>

#include "planc/lifespans.h"
#include "planc/policy.h"
#include "planc/simulate.h"
#include "tests/support/randgraph.h"
#include "tests/support/unit.h"

enum { GRAPHS = 100, MOST_BUFFERS = 4096 };

static planc_profile *profile;
static void read_profile(void) {
  ok(planc_profile_read("profiles/k40m.json", &profile));
}
static void free_profile(void) {
  planc_profile_free(profile);
}

typedef struct seen {
  const planc_plan *plan;
  const planc_trace *trace;
  int32_t buffer_of[MOST_BUFFERS]; /* by residency */
  bool used[MOST_BUFFERS];
  int64_t start_ns[MOST_BUFFERS], end_ns[MOST_BUFFERS]; /* by buffer */
} seen;

static void note(seen *s, int32_t buffer, int64_t start_ns, int64_t end_ns) {
  if (!s->used[buffer] || start_ns < s->start_ns[buffer]) s->start_ns[buffer] = start_ns;
  if (!s->used[buffer] || end_ns > s->end_ns[buffer]) s->end_ns[buffer] = end_ns;
  s->used[buffer] = true;
}

static void see(void *user, const planc_plan *plan, const planc_instr *instr, int64_t start_ns, int64_t end_ns) {
  seen *s = user;
  if (instr < plan->body.instrs || instr >= plan->body.instrs + plan->body.n) return;
  if (instr->op != PLANC_INSTR_exec) {
    note(s, s->buffer_of[instr->id >= 0 ? instr->id : instr->aux], start_ns, end_ns);
    return;
  }
  const planc_instance *in = &s->trace->instances[instr->id];
  for (int32_t a = in->first_access; a < in->first_access + in->n_accesses; a++)
    note(s, s->trace->accesses[a].buffer, start_ns, end_ns);
}

/* What a tensor is by who makes it and who reads it. */
static planc_tensor_class class_of(const planc_trace *trace, int32_t b) {
  const planc_buffer *buffer = &trace->buffers[b];
  int32_t n_forward_makers = 0, n_backward_readers = 0, n_readers = 0, first = -1;
  if (buffer->flags & PLANC_BUFFER_PERSISTENT) return PLANC_TENSOR_KEPT;
  for (int32_t i = 0; i < trace->n_instances; i++) {
    bool forward = planc_trace_op(trace, i)->phase == PLANC_PHASE_forward;
    for (int32_t k = 0; k < trace->instances[i].n_accesses; k++) {
      const planc_access *access = &trace->accesses[trace->instances[i].first_access + k];
      if (access->buffer != b) continue;
      if (access->write >= 0 && first < 0) {
        first = i;
        n_forward_makers += forward;
      }
      n_readers += access->read >= 0 && i != first;
      n_backward_readers += access->read >= 0 && !forward;
    }
  }
  if (n_forward_makers > 0 || buffer->flags & PLANC_BUFFER_FED)
    return n_backward_readers > 0 ? PLANC_TENSOR_FEATURE : PLANC_TENSOR_TEMPORARY;
  return n_readers > 0 ? PLANC_TENSOR_GRADIENT : PLANC_TENSOR_TEMPORARY;
}

static int compare(const void *left, const void *right) {
  const int64_t *a = left, *b = right;
  return (*a > *b) - (*a < *b);
}

static void assert_class(const seen *s, const planc_lifespan *got, planc_tensor_class of) {
  static int64_t spans[MOST_BUFFERS];
  int64_t n = 0, bytes = 0, sum = 0;
  for (int32_t b = 0; b < s->trace->n_buffers; b++) {
    if (!s->used[b] || class_of(s->trace, b) != of) continue;
    spans[n++] = s->end_ns[b] - s->start_ns[b];
    sum += s->end_ns[b] - s->start_ns[b];
    bytes += s->trace->buffers[b].bytes;
  }
  qsort(spans, (size_t)n, sizeof *spans, compare);
  ck_assert_int_eq(got->n, n);
  ck_assert_int_eq(got->bytes, bytes);
  ck_assert_int_eq(got->mean_ns, n > 0 ? sum / n : 0);
  ck_assert_int_eq(got->median_ns, n > 0 ? spans[n / 2] : 0);
  ck_assert_int_eq(got->longest_ns, n > 0 ? spans[n - 1] : 0);
}

START_TEST(tensors_live_from_use_to_use) {
  static seen s;
  uint64_t seed = (uint64_t)_i;
  planc_graph *graph;
  planc_plan *plan;
  planc_trace *trace;
  planc_lifespans *lifespans;
  planc_simulation simulation;
  randgraph_options options = {.max_ops = 50, .inference = rand_chance(&seed, 10)};
  ok(randgraph_make(rand_next(&seed), &options, &graph));
  planc_problem problem = {.job.graph = graph,
                           .job.profile = profile,
                           .job.batch = 1 + rand_below(&seed, 40),
                           .terms.budgets[PLANC_MEMORY_DEVICE] = planc_profile_device(profile)->memory_bytes,
                           .terms.budgets[PLANC_MEMORY_HOST] = -1};
  ok(planc_make_plan(&problem, planc_policy_find("none"), &plan));
  ok(planc_expand(plan->jobs, plan->n_jobs, &trace));
  s = (seen){.plan = plan, .trace = trace};
  ck_assert_int_lt(plan->n_residencies + trace->n_buffers, MOST_BUFFERS);
  for (int32_t r = 0; r < plan->n_boundary; r++) s.buffer_of[r] = plan->boundary[r].buffer;
  for (int32_t i = 0; i < plan->body.n; i++)
    if (plan->body.instrs[i].op == PLANC_INSTR_acquire) s.buffer_of[plan->body.instrs[i].id] = plan->body.instrs[i].aux;
  ok(planc_simulate(plan, &(planc_simulate_options){.visitor = see, .user = &s}, &simulation));
  ok(planc_lifespans_of(plan, &lifespans));
  ck_assert_int_eq(lifespans->n_jobs, 1);
  for (int32_t c = PLANC_TENSOR_KEPT + 1; c < PLANC_N_TENSOR_CLASSES; c++)
    assert_class(&s, &lifespans->of[0][c], (planc_tensor_class)c);
  ck_assert_int_eq(lifespans->of[0][PLANC_TENSOR_KEPT].n, 0);
  planc_lifespans_free(lifespans);
  planc_trace_free(trace);
  planc_plan_free(plan);
  planc_graph_free(graph);
}
END_TEST

int main(void) {
  Suite *suite = suite_create("lifespans");
  TCase *lives = tcase_create("lives");
  tcase_add_unchecked_fixture(lives, read_profile, free_profile);
  tcase_add_loop_test(lives, tensors_live_from_use_to_use, 0, GRAPHS);
  suite_add_tcase(suite, lives);
  return run_suite(suite);
}
