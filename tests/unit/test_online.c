/* Policies whose systems allocate as data comes and goes: the addresses of their plans are those that the allocator
 * gives which sees the plan's own instructions one by one, period after period. */
#include <check.h>
#include <stdlib.h>

#include "planc/analysis.h"
#include "planc/policy.h"
#include "planner/memory/allocator.h"
#include "planner/memory/bfc.h"
#include "tests/support/least.h"
#include "tests/support/plan_view.h"
#include "tests/support/unit.h"

enum { BATCH = 16, MOST_PERIODS = 100 };

static planc_profile *profile;
static planc_graph *graph;
static int64_t least; /* with everything resident */
static int64_t room;

static void set_up(void) {
  planc_graph *forward;
  ok(planc_profile_read("profiles/k40m.json", &profile));
  ok(planc_graph_read("graphs/resnet34.yaml", &forward));
  ok(planc_graph_train(forward, PLANC_MOMENTUM, &graph));
  planc_graph_free(forward);
  planc_problem problem = {
      .job.graph = graph, .job.profile = profile, .job.batch = BATCH, .terms.budgets[PLANC_MEMORY_HOST] = -1};
  ok(find_least_bytes(&problem, planc_policy_find("none"), &least));
}

static void tear_down(void) {
  planc_graph_free(graph);
  planc_profile_free(profile);
}

/* A plan in `percent` of what it takes with everything resident. */
static planc_plan *make_in(const char *policy, int64_t percent, planc_placement placement, int64_t chunk_bytes) {
  planc_problem problem = {.job.graph = graph,
                           .job.profile = profile,
                           .job.batch = BATCH,
                           .terms.budgets[PLANC_MEMORY_HOST] = -1,
                           .terms.chunk_bytes = chunk_bytes};
  planc_plan *plan;
  problem.terms.budgets[PLANC_MEMORY_DEVICE] = least / 100 * percent;
  room = problem.terms.budgets[PLANC_MEMORY_DEVICE] - planc_profile_device(profile)->reserved_bytes;
  problem.terms.placement = placement;
  ok(planc_make_plan(&problem, planc_policy_find(policy), &plan));
  return plan;
}

static planc_plan *make(const char *policy, int64_t percent) {
  return make_in(policy, percent, PLANC_PLACEMENT_BEST_FIT, 0);
}

/* By residency: its handle, -1 for one that is not on the device. */
static int32_t *no_handles(const planc_plan *plan) {
  int32_t *handles = calloc((size_t)plan->n_residencies, sizeof *handles);
  for (int32_t r = 0; r < plan->n_residencies; r++) handles[r] = -1;
  return handles;
}

START_TEST(lms_lies_where_tensorflow_puts_it) {
  static const int64_t percents[] = {72, 80, 90, 130};
  for (int k = 0; k < 4; k++) {
    planc_plan *plan = make("lms", percents[k]);
    planc_trace *trace;
    pl_bfc bfc;
    int32_t *handles = no_handles(plan), handle;
    int64_t address;
    ok(planc_expand(plan->jobs, plan->n_jobs, &trace));
    ok(pl_bfc_init(&bfc, room));
    for (int32_t r = 0; r < plan->n_boundary; r++) {
      ck_assert(!is_parked(plan, &plan->boundary[r]));
      ok(pl_bfc_take(&bfc, trace->buffers[plan->boundary[r].buffer].bytes, &handles[r], &address));
      ck_assert_int_eq(plan->boundary[r].address, address);
    }
    for (int32_t i = 0; i < plan->body.n; i++) {
      const planc_instr *instr = &plan->body.instrs[i];
      if (acquires_on_device(plan, instr)) {
        ok(pl_bfc_take(&bfc, instr->bytes, &handles[instr->id], &address));
        ck_assert_int_eq(instr->address, address);
      } else if (instr->op == PLANC_INSTR_release && handles[instr->id] >= 0) {
        ok(pl_bfc_give(&bfc, handles[instr->id]));
      } else if (instr->op == PLANC_INSTR_exec && instr->bytes > 0) {
        ok(pl_bfc_take(&bfc, instr->bytes, &handle, &address));
        ck_assert_int_eq(instr->address, address);
        ok(pl_bfc_give(&bfc, handle));
      }
    }
    pl_bfc_free(&bfc);
    free(handles);
    planc_trace_free(trace);
    planc_plan_free(plan);
  }
}
END_TEST

/* One period; whether all addresses are the plan's. */
static bool follow(const planc_plan *plan, pl_caching *c, int32_t *handles) {
  bool same = true;
  int64_t address;
  for (int32_t i = 0; i < plan->body.n; i++) {
    const planc_instr *instr = &plan->body.instrs[i];
    if (acquires_on_device(plan, instr)) {
      ok(pl_caching_take(c, instr->bytes, &handles[instr->id], &address));
      ck_assert_int_ge(handles[instr->id], 0);
      same = same && address == instr->address;
    } else if (instr->op == PLANC_INSTR_release && handles[instr->id] >= 0) {
      ok(pl_caching_give(c, handles[instr->id]));
    } else if (instr->op == PLANC_INSTR_exec && instr->bytes > 0) {
      int32_t handle;
      ok(pl_caching_take(c, instr->bytes, &handle, &address));
      ck_assert_int_ge(handle, 0);
      same = same && address == instr->address;
      ok(pl_caching_give(c, handle));
    }
  }
  return same;
}

/* The iteration in which the sequences are recorded: every op has memory for what it uses alone. */
static void record(const planc_plan *plan, const planc_trace *trace, pl_caching *c) {
  int32_t handles[64];
  for (int32_t i = 0, k = 0; i < trace->n_instances; i++) {
    const planc_instance *in = &trace->instances[i];
    int64_t address;
    int32_t n = 0;
    while (plan->body.instrs[k].op != PLANC_INSTR_exec) k++;
    ck_assert_int_eq(plan->body.instrs[k].id, i);
    for (int32_t a = in->first_access; a < in->first_access + in->n_accesses; a++) {
      ok(pl_caching_take(c, trace->buffers[trace->accesses[a].buffer].bytes, &handles[n++], &address));
    }
    if (plan->body.instrs[k].bytes > 0) ok(pl_caching_take(c, plan->body.instrs[k].bytes, &handles[n++], &address));
    while (n > 0) ok(pl_caching_give(c, handles[--n]));
    k++;
  }
}

/* With `page_bytes` the device has room in pages, else it is one piece. */
static void settle(int64_t percent, int64_t page_bytes) {
  bool paged = page_bytes > 0;
  planc_plan *plan = make_in("window", percent, paged ? PLANC_PLACEMENT_PAGED : PLANC_PLACEMENT_BEST_FIT, page_bytes);
  planc_trace *trace;
  pl_caching c;
  pl_chunks pages = {.chunk_bytes = page_bytes};
  int32_t *handles = no_handles(plan);
  bool same = false;
  ok(planc_expand(plan->jobs, plan->n_jobs, &trace));
  for (int32_t r = 0; r < plan->n_boundary; r++) ck_assert(is_parked(plan, &plan->boundary[r]));
  if (paged) {
    pages.most = room / page_bytes;
    ok(pl_caching_init_pages(&c, &pages));
  } else {
    ok(pl_caching_init(&c, room));
  }
  record(plan, trace, &c);
  for (int period = 0; period < MOST_PERIODS && !same; period++) same = follow(plan, &c, handles);
  ck_assert_msg(same, "at %d %% the allocator does not come to the plan's addresses", (int)percent);
  ck_assert_msg(follow(plan, &c, handles), "at %d %% the next period has other addresses", (int)percent);
  if (paged) ck_assert_int_eq(pages.n_chunks * page_bytes, device_of(plan)->arena_bytes);
  /* Of pages nothing is lost inside: what is lost lies between data, as in one piece. */
  planc_fragmentation lost;
  ok(planc_fragmentation_of(plan, &lost));
  ck_assert_int_eq(lost.inside_bytes + lost.shared_bytes + lost.bound_bytes, 0);
  ck_assert_int_eq(lost.lost_bytes, device_of(plan)->arena_bytes - lost.live_bytes);
  pl_caching_free(&c);
  pl_chunks_free(&pages);
  free(handles);
  planc_trace_free(trace);
  planc_plan_free(plan);
}

START_TEST(window_lies_where_the_cache_settles) {
  static const int64_t percents[] = {66, 72, 80, 90, 130};
  for (int k = 0; k < 5; k++) settle(percents[k], 0);
}
END_TEST

START_TEST(window_lies_where_the_cache_settles_in_pages) {
  static const int64_t percents[] = {66, 80}, pages[] = {512 << 10, 2 << 20};
  for (int k = 0; k < 4; k++) settle(percents[k / 2], pages[k % 2]);
}
END_TEST

/* In virtual memory the plan is the first period of an allocator with as many chunks as there is room for. */
START_TEST(window_lies_where_chunks_are_given) {
  static const int64_t percents[] = {60, 66, 80, 130}, chunks[] = {256 << 10, 2 << 20, 8 << 20, 20 << 20};
  for (int k = 0; k < 16; k++) {
    int64_t chunk_bytes = chunks[k % 4], address;
    planc_plan *plan = make_in("window", percents[k / 4], PLANC_PLACEMENT_VMM, chunk_bytes);
    pl_allocator a;
    int32_t *handles = no_handles(plan), handle;
    ok(pl_allocator_init_vmm(&a, chunk_bytes, room / chunk_bytes));
    for (int32_t i = 0; i < plan->body.n; i++) {
      const planc_instr *instr = &plan->body.instrs[i];
      if (acquires_on_device(plan, instr)) {
        ok(pl_allocator_take(&a, instr->bytes, &handles[instr->id], &address));
        ck_assert_int_eq(instr->address, address);
      } else if (instr->op == PLANC_INSTR_release && handles[instr->id] >= 0) {
        ok(pl_allocator_give(&a, handles[instr->id]));
      } else if (instr->op == PLANC_INSTR_exec && instr->bytes > 0) {
        ok(pl_allocator_take(&a, instr->bytes, &handle, &address));
        ck_assert_int_eq(instr->address, address);
        ok(pl_allocator_give(&a, handle));
      }
    }
    ck_assert_int_eq(pl_allocator_arena(&a), device_of(plan)->arena_bytes);
    pl_allocator_free(&a);
    free(handles);
    planc_plan_free(plan);
  }
}
END_TEST

int main(void) {
  Suite *suite = suite_create("online");
  TCase *tests = tcase_create("all");
  tcase_add_checked_fixture(tests, set_up, tear_down);
  tcase_set_timeout(tests, 60);
  tcase_add_test(tests, lms_lies_where_tensorflow_puts_it);
  tcase_add_test(tests, window_lies_where_the_cache_settles);
  tcase_add_test(tests, window_lies_where_the_cache_settles_in_pages);
  tcase_add_test(tests, window_lies_where_chunks_are_given);
  suite_add_tcase(suite, tests);
  return run_suite(suite);
}
