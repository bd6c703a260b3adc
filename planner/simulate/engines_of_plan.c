/* What a plan's links say of its engines (program_of_plan.h): which GPUs' each is, which engines share its bandwidth,
 * and which copy the other way. Replicas do the same at the same time: when the engines that copy against one of a
 * replica copy, those of other replicas do so as well, and need not be looked at. */
#include "planner/simulate/program_of_plan.h"

enum { NONE = -1 };

typedef struct making_engines {
  const planc_plan *plan;
  pl_arena *arena;
  sim_engine *engines;
  int32_t n;
  int32_t *found; /* GPUs or opposites of the engine that is looked at */
  int32_t *seen;  /* by GPU or engine: the last engine that it was found for */
} making_engines;

static void forget(making_engines *m, int32_t n);
static planc_status find_gpus(making_engines *m, int32_t engine);
static planc_status find_against(making_engines *m, int32_t engine);
static planc_status find_buses(making_engines *m);

planc_status sim_engines_of_plan(const planc_plan *plan, pl_arena *arena, sim_program *out) {
  making_engines m = {.plan = plan, .arena = arena};
  for (int32_t l = 0; l < plan->n_links; l++)
    if (plan->links[l].engine >= m.n) m.n = plan->links[l].engine + 1;
  int32_t most = m.n > plan->n_memories ? m.n : plan->n_memories;
  PLANC_TRY(PL_NEW(arena, &m.engines, m.n));
  PLANC_TRY(PL_NEW(arena, &m.found, most));
  PLANC_TRY(PL_NEW(arena, &m.seen, most));
  PLANC_TRY(find_buses(&m));
  forget(&m, most);
  for (int32_t e = 0; e < m.n; e++) PLANC_TRY(find_gpus(&m, e));
  forget(&m, most);
  for (int32_t e = 0; e < m.n; e++) PLANC_TRY(find_against(&m, e));
  out->engines = m.engines;
  out->n_engines = m.n;
  return NULL;
}

static bool leads_to_gpu(const planc_plan *plan, const planc_plan_link *link) {
  return plan->memories[link->from].kind == PLANC_MEMORY_DEVICE || plan->memories[link->to].kind == PLANC_MEMORY_DEVICE;
}

/* Of an engine that is a GPU's, whether a link says what the engine copies against (planc-plan(5)). Each GPU's engines
 * have the links between user and host, too. By these, copies to one GPU would count as opposite to copies from another
 * one, which do not slow them. */
static bool counts(const making_engines *m, const planc_plan_link *link) {
  return m->engines[link->engine].n_gpus == 0 || leads_to_gpu(m->plan, link);
}

static void note(making_engines *m, int32_t engine, int32_t what, int32_t *n) {
  if (m->seen[what] == engine) return;
  m->seen[what] = engine;
  m->found[(*n)++] = what;
}

static void forget(making_engines *m, int32_t n) {
  for (int32_t i = 0; i < n; i++) m->seen[i] = NONE;
}

/* --- GPUs and opposite engines ------------------------------------------------------------------------------------ */

static planc_status find_gpus(making_engines *m, int32_t engine) {
  const planc_plan *plan = m->plan;
  sim_engine *of = &m->engines[engine];
  for (int32_t l = 0; l < plan->n_links; l++) {
    if (plan->links[l].engine != engine) continue;
    int32_t ends[] = {plan->links[l].from, plan->links[l].to};
    for (int k = 0; k < 2; k++)
      if (plan->memories[ends[k]].kind == PLANC_MEMORY_DEVICE) note(m, engine, ends[k], &of->n_gpus);
  }
  return pl_arena_copy(m->arena, m->found, of->n_gpus, sizeof *m->found, (void *)&of->gpus);
}

static planc_status find_against(making_engines *m, int32_t engine) {
  const planc_plan *plan = m->plan;
  sim_engine *of = &m->engines[engine];
  for (int32_t l = 0; l < plan->n_links; l++) {
    const planc_plan_link *link = &plan->links[l];
    if (link->engine != engine || !counts(m, link)) continue;
    for (int32_t b = 0; b < plan->n_links; b++) {
      const planc_plan_link *back = &plan->links[b];
      bool leads_back = back->from == link->to && back->to == link->from && back->engine != engine;
      if (leads_back && counts(m, back)) note(m, engine, back->engine, &of->n_against);
    }
  }
  return pl_arena_copy(m->arena, m->found, of->n_against, sizeof *m->found, (void *)&of->against);
}

/* --- Buses -------------------------------------------------------------------------------------------------------- */

static planc_status find_buses(making_engines *m) {
  const planc_plan *plan = m->plan;
  int32_t *lowest; /* by bus of the plan */
  PLANC_TRY(PL_NEW(m->arena, &lowest, plan->n_links));
  for (int32_t b = 0; b < plan->n_links; b++) lowest[b] = m->n;
  for (int32_t l = 0; l < plan->n_links; l++) {
    const planc_plan_link *link = &plan->links[l];
    if (link->bus >= 0 && link->engine < lowest[link->bus]) lowest[link->bus] = link->engine;
  }
  for (int32_t e = 0; e < m->n; e++) {
    m->engines[e].bus = e;
    m->engines[e].sharers = 1;
  }
  for (int32_t l = 0; l < plan->n_links; l++) {
    if (plan->links[l].bus < 0) continue;
    m->engines[plan->links[l].engine].bus = lowest[plan->links[l].bus];
    m->engines[plan->links[l].engine].sharers = planc_plan_replicas(plan);
  }
  return NULL;
}
