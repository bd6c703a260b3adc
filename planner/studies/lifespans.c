/* How long tensors live in a plan (planc/lifespans.h). */
#include "planc/lifespans.h"

#include <stdlib.h>

#include "plan/plan_trace.h"
#include "planner/analysis/plan_live.h"
#include "util/arena.h"
#include "util/ascending.h"
#include "util/math.h"

/* A residency on a device, as far as anything uses it. */
typedef struct tensor_life {
  int32_t buffer; /* -1 = it is elsewhere, or what persists */
  planc_tensor_class class;
  bool used;
  int64_t start_ns, end_ns;
} tensor_life;

typedef struct lifespans_memory {
  planc_lifespans lifespans;
  pl_arena arena;
} lifespans_memory;

typedef struct measuring_lives {
  const planc_plan *plan;
  const planc_trace *trace;
  pl_arena arena;
  tensor_life *lives; /* by residency */
  int64_t *spans;     /* of one job and class, scratch */
} measuring_lives;

static planc_status measure(measuring_lives *m, lifespans_memory *out);
static planc_status list_lives(measuring_lives *m);
static void see(void *user, const planc_plan *plan, const planc_instr *instr, int64_t start_ns, int64_t end_ns);
static void sum_up(measuring_lives *m, int32_t job, planc_tensor_class class, planc_lifespan *out);

planc_status planc_lifespans_of(const planc_plan *plan, planc_lifespans **out) {
  measuring_lives m = {.plan = plan};
  planc_trace *trace;
  *out = NULL;
  PLANC_TRY(pl_plan_expand(plan, &trace));
  m.trace = trace;
  lifespans_memory *memory = calloc(1, sizeof *memory);
  planc_status status = memory ? measure(&m, memory) : planc_error(PLANC_OUT_OF_MEMORY, "out of memory");
  pl_arena_free(&m.arena);
  planc_trace_free(trace);
  if (memory) *out = &memory->lifespans;
  if (!status) return NULL;
  planc_lifespans_free(*out);
  *out = NULL;
  return status;
}

static planc_status measure(measuring_lives *m, lifespans_memory *out) {
  planc_simulation simulation;
  planc_lifespan(*of)[PLANC_N_TENSOR_CLASSES];
  PLANC_TRY(pl_plan_check_names(m->plan, m->trace));
  PLANC_TRY(PL_NEW(&out->arena, &of, m->plan->n_jobs));
  PLANC_TRY(list_lives(m));
  PLANC_TRY(planc_simulate(m->plan, &(planc_simulate_options){.visitor = see, .user = m}, &simulation));
  for (int32_t j = 0; j < m->plan->n_jobs; j++)
    for (int32_t c = PLANC_TENSOR_KEPT + 1; c < PLANC_N_TENSOR_CLASSES; c++)
      sum_up(m, j, (planc_tensor_class)c, &of[j][c]);
  out->lifespans = (planc_lifespans){m->plan->n_jobs, (const planc_lifespan(*)[PLANC_N_TENSOR_CLASSES])of};
  return NULL;
}

void planc_lifespans_free(planc_lifespans *lifespans) {
  if (!lifespans) return;
  lifespans_memory *memory = (lifespans_memory *)lifespans;
  pl_arena_free(&memory->arena);
  free(memory);
}

/* --- What uses what when ------------------------------------------------------------------------------------------ */

static void use(measuring_lives *m, int32_t residency, int64_t start_ns, int64_t end_ns) {
  if (residency < 0 || m->lives[residency].buffer < 0) return;
  tensor_life *life = &m->lives[residency];
  if (!life->used || start_ns < life->start_ns) life->start_ns = start_ns;
  if (!life->used || end_ns > life->end_ns) life->end_ns = end_ns;
  life->used = true;
}

static bool is_in_body(const planc_plan *plan, const planc_instr *instr) {
  return instr >= plan->body.instrs && instr < plan->body.instrs + plan->body.n;
}

static void see(void *user, const planc_plan *plan, const planc_instr *instr, int64_t start_ns, int64_t end_ns) {
  measuring_lives *m = user;
  if (!is_in_body(plan, instr)) return;
  if (instr->op != PLANC_INSTR_exec) {
    use(m, instr->id, start_ns, end_ns);
    use(m, instr->aux, start_ns, end_ns);
    return;
  }
  for (int32_t k = 0; k < m->trace->instances[instr->id].n_accesses; k++)
    use(m, plan->uses[instr->first_use + k], start_ns, end_ns);
}

static bool counts(const measuring_lives *m, const planc_instr *instr) {
  return m->plan->memories[instr->memory].kind == PLANC_MEMORY_DEVICE &&
         !(m->trace->buffers[instr->aux].flags & PLANC_BUFFER_PERSISTENT);
}

static planc_status list_lives(measuring_lives *m) {
  PLANC_TRY(PL_NEW(&m->arena, &m->lives, m->plan->n_residencies));
  PLANC_TRY(PL_NEW(&m->arena, &m->spans, m->plan->n_residencies));
  for (int32_t r = 0; r < m->plan->n_residencies; r++) m->lives[r].buffer = -1;
  for (int32_t i = 0; i < m->plan->body.n; i++) {
    const planc_instr *instr = &m->plan->body.instrs[i];
    if (instr->op != PLANC_INSTR_acquire || !counts(m, instr)) continue;
    m->lives[instr->id].buffer = instr->aux;
    m->lives[instr->id].class = planc_tensor_class_of(m->trace, instr->aux);
  }
  return NULL;
}

/* --- Figures ------------------------------------------------------------------------------------------------------ */

static void sum_up(measuring_lives *m, int32_t job, planc_tensor_class class, planc_lifespan *out) {
  int64_t sum = 0;
  for (int32_t r = 0; r < m->plan->n_residencies; r++) {
    const tensor_life *life = &m->lives[r];
    if (!life->used || life->class != class || m->trace->buffers[life->buffer].job != job) continue;
    m->spans[out->n++] = life->end_ns - life->start_ns;
    sum = pl_add_saturate(sum, life->end_ns - life->start_ns);
    out->bytes = pl_add_saturate(out->bytes, m->trace->buffers[life->buffer].bytes);
  }
  if (out->n == 0) return;
  qsort(m->spans, (size_t)out->n, sizeof *m->spans, pl_ascending);
  out->mean_ns = sum / out->n;
  out->median_ns = m->spans[out->n / 2];
  out->longest_ns = m->spans[out->n - 1];
}
