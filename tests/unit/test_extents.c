/* What a run touches is what its plan says, to the byte: in the arena the plan's residencies and workspaces, in host
 * memory its residencies there. Stand-ins write every byte of their results and workspaces, and arenas are run from two
 * patterns, so that a byte that was written differs from one of them. Where a storage is written in parts, a residency
 * that has only some of them may be touched in less. */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "planc/policy.h"
#include "runtime/session.h"
#include "tests/support/least.h"
#include "tests/support/plan_view.h"
#include "tests/support/randgraph.h"
#include "tests/support/unit.h"

static void mark(char *map, int64_t size, int64_t address, int64_t bytes) {
  ck_assert_int_ge(address, 0);
  ck_assert_int_le(address + bytes, size);
  if (bytes > 0) memset(map + address, 1, (size_t)bytes);
}

/* Marks what the instructions of a plan name; `maps` are those of the device and the host. */
static void mark_planned(const planc_plan *plan, const planc_trace *trace, char *const maps[2]) {
  for (int32_t b = 0; b < plan->n_boundary; b++) {
    const planc_boundary *row = &plan->boundary[b];
    mark(maps[row->memory], plan->memories[row->memory].arena_bytes, row->address, trace->buffers[row->buffer].bytes);
  }
  for (int32_t i = 0; i < plan->body.n; i++) {
    const planc_instr *instr = &plan->body.instrs[i];
    int32_t memory = instr->op == PLANC_INSTR_acquire ? instr->memory : 0;
    if (instr->op == PLANC_INSTR_acquire || instr->op == PLANC_INSTR_exec)
      mark(maps[memory], plan->memories[memory].arena_bytes, instr->address, instr->bytes);
  }
}

static void mark_written(const char *memory, int64_t bytes, int pattern, char *map) {
  for (int64_t i = 0; i < bytes; i++)
    if ((unsigned char)memory[i] != pattern) map[i] = 1;
}

static void run_from(const planc_plan *plan, int pattern, char *device, char *host) {
  planrt_session *session;
  planrt_options options = {.synthetic = true, .concurrent = true};
  ok(planrt_session_new(plan, &options, &session));
  ok(planrt_init(session));
  char *arena = session->backend->arena(session->device), *slots = session->backend->host_arena(session->device);
  memset(arena, pattern, (size_t)device_of(plan)->arena_bytes);
  memset(slots, pattern, (size_t)host_of(plan)->arena_bytes);
  ok(planrt_run(session, 2));
  mark_written(arena, device_of(plan)->arena_bytes, pattern, device);
  mark_written(slots, host_of(plan)->arena_bytes, pattern, host);
  planrt_session_free(session);
}

static char *map_of(int64_t bytes) {
  char *map = calloc((size_t)bytes + 1, 1);
  ck_assert_ptr_nonnull(map);
  return map;
}

static void assert_touched_as_planned(const planc_plan *plan, bool whole) {
  planc_trace *trace;
  ok(planc_expand(plan->jobs, plan->n_jobs, &trace));
  int64_t arena = device_of(plan)->arena_bytes, host = host_of(plan)->arena_bytes;
  char *planned[] = {map_of(arena), map_of(host)}, *touched[] = {map_of(arena), map_of(host)};
  ck_assert_int_eq(plan->n_memories, 3);
  mark_planned(plan, trace, planned);
  run_from(plan, 0x00, touched[0], touched[1]);
  run_from(plan, 0xff, touched[0], touched[1]);
  for (int64_t i = 0; i < arena; i++)
    ck_assert_msg(planned[0][i] == touched[0][i] || (!whole && planned[0][i]),
                  "device byte %lld of %lld: planned %d, touched %d", (long long)i, (long long)arena, planned[0][i],
                  touched[0][i]);
  for (int64_t i = 0; i < host; i++)
    ck_assert_msg(planned[1][i] == touched[1][i] || (!whole && planned[1][i]),
                  "host byte %lld of %lld: planned %d, touched %d", (long long)i, (long long)host, planned[1][i],
                  touched[1][i]);
  for (int k = 0; k < 2; k++) {
    free(planned[k]);
    free(touched[k]);
  }
  planc_trace_free(trace);
}

START_TEST(touched_as_planned) {
  planc_profile *profile;
  planc_graph *graph;
  bool whole = _i % 3 > 0;
  ok(planc_profile_read("profiles/k40m.json", &profile));
  ok(randgraph_make((uint64_t)_i, &(randgraph_options){.max_ops = 20, .whole = whole}, &graph));
  planc_problem problem = {
      .job.graph = graph, .job.profile = profile, .job.batch = 1 + _i % 5, .terms.budgets[PLANC_MEMORY_HOST] = -1};
  for (const planc_policy *policy = planc_policies(); policy->name; policy++) {
    if (policy->supports & PLANC_POLICY_SIMULATED) continue;
    planc_plan *plan;
    problem.terms.settings.effort = policy->supports & PLANC_POLICY_SEARCHES ? 1 : 0; /* short searches */
    ok(find_least_bytes(&problem, policy, &problem.terms.budgets[PLANC_MEMORY_DEVICE]));
    ok(planc_make_plan(&problem, policy, &plan));
    assert_touched_as_planned(plan, whole);
    planc_plan_free(plan);
  }
  planc_graph_free(graph);
  planc_profile_free(profile);
}
END_TEST

int main(void) {
  Suite *suite = suite_create("extents");
  TCase *c = tcase_create("extents");
  tcase_set_timeout(c, 120);
  tcase_add_loop_test(c, touched_as_planned, 0, sampled(24));
  suite_add_tcase(suite, c);
  return run_suite(suite);
}
