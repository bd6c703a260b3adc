/* Plans of small random graphs (randplan.h). */
#include "tests/support/randplan.h"

#include <string.h>

#include "planc/policy.h"
#include "planner/choose/compact.h"
#include "planner/evaluate.h"
#include "tests/support/least.h"
#include "tests/support/lower_for.h"
#include "tests/support/randgraph.h"
#include "tests/support/randschedule.h"
#include "tests/support/unit.h"
#include "util/math.h"

/* States every other schedule again for half of what its places take beyond what lives, with moves for it. */
static void compact(uint64_t seed, randcase *c) {
  planc_evaluator evaluator = pl_evaluator_of(&c->problem);
  int64_t live, peak, reserved = planc_profile_device(c->problem.job.profile)->reserved_bytes;
  bool fits;
  if (seed % 2) return;
  ok_in(evaluator.live(&evaluator, &c->candidate, &live), "live");
  ok_in(evaluator.peak(&evaluator, &c->candidate, &peak), "peak");
  int64_t room = pl_align_up(live + (peak - live) / 2 - reserved, PLANC_ALIGNMENT);
  ok_in(pl_compact(&evaluator, room, &c->candidate, &fits), "compacted");
}

static void make_random(uint64_t seed, const planc_profile *profile, planc_graph **graph, planc_plan **out) {
  randgraph_options options = {.max_ops = 10, .max_elements = 16};
  randcase c;
  ok_in(randgraph_make(seed, &options, graph), "graph");
  ok_in(randcase_make(seed, *graph, profile, 1 + (int32_t)(seed % 2), &c), "case");
  ok_in(randschedule_make(seed, NULL, &c), "schedule");
  compact(seed, &c);
  ok_in(lower_for(&c.problem, "random", &c.candidate, out), "plan");
  randcase_free(&c);
}

static const struct {
  const char *policy;
  planc_placement placement;
} kinds[] = {{.policy = "modnn"},        {.policy = "vdnn-all"},
             {.policy = "cheap"},        {.policy = "none"},
             {.policy = "vdnn-conv"},    {.policy = "chen"},
             {.policy = "vdnn+"},        {.policy = "window"},
             {.policy = "naive"},        {.policy = "window", .placement = PLANC_PLACEMENT_VMM},
             {.policy = "lms"},          {.policy = "prefetch-1"},
             {.policy = "capuchin"},     {.policy = "window", .placement = PLANC_PLACEMENT_PAGED},
             {.policy = "superneurons"}, {.policy = "tensile"},
             {.policy = "vdnn-dyn"}};
enum { N_KINDS = sizeof kinds / sizeof *kinds };

/* Every policy that makes plans is one of the kinds, but what takes seconds. */
static void assert_all_policies(void) {
  for (const planc_policy *policy = planc_policies(); policy->name; policy++) {
    bool found = policy->supports & (PLANC_POLICY_SIMULATED | PLANC_POLICY_CHOOSES | PLANC_POLICY_SEARCHES);
    for (int k = 0; k < N_KINDS; k++) found = found || strcmp(kinds[k].policy, policy->name) == 0;
    ck_assert_msg(found, "no random plan is of %s", policy->name);
  }
}

/* Under a budget that makes the policy work. In virtual memory some data must be larger than a chunk. */
static void make_of_policy(int number, const planc_profile *profile, planc_graph **graph, planc_plan **out) {
  enum { CHUNK = 4096 };
  assert_all_policies();
  int which = number % N_KINDS;
  const planc_policy *policy = planc_policy_find(kinds[which].policy);
  randgraph_options options = {.max_ops = 10, .max_elements = number % 2 ? 64 : 16};
  if (kinds[which].placement != PLANC_PLACEMENT_BEST_FIT) options.max_elements = 2048;
  ok_in(randgraph_make(UINT64_C(5000) + (uint64_t)number, &options, graph), "graph");
  planc_problem problem = {.job.graph = *graph,
                           .job.profile = profile,
                           .job.batch = 1 + number % 3,
                           .terms.budgets[PLANC_MEMORY_HOST] = -1,
                           .terms.placement = kinds[which].placement,
                           .terms.chunk_bytes = CHUNK,
                           .terms.gpus = number >= RANDPLANS_OF_ONE ? 2 + number % 3 / 2 : 1};
  ok_in(find_least_bytes(&problem, policy, &problem.terms.budgets[PLANC_MEMORY_DEVICE]), "least budget");
  ok_in(planc_make_plan(&problem, policy, out), "plan");
}

void randplan_make(int number, const planc_profile *profile, planc_graph **out_graph, planc_plan **out) {
  if (number < RANDPLANS_OF_POLICIES) {
    make_of_policy(number, profile, out_graph, out);
  } else {
    make_random((uint64_t)number, profile, out_graph, out);
  }
}
