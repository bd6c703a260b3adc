/* Writing plans, planc-plan(5): the header with the counts of all rows, then section after section, a row per line. */
#include <stdlib.h>

#include "plan/graph_rows.h"
#include "plan/instr_rows.h"
#include "plan/layout.h"
#include "plan/table_rows.h"
#include "plan/tables.h"
#include "util/hash.h"

static planc_status check_kinds(const planc_plan *plan);
static void emit_plan(pl_emit *emit, const planc_plan *plan, const pl_plan_layout *layout);
static void emit_header(pl_emit *emit, const planc_plan *plan, const pl_plan_layout *layout);
static void emit_instrs(pl_emit *emit, const planc_plan *plan, int64_t n_instrs);

planc_status planc_plan_print(const planc_plan *plan, char **out_text, size_t *out_length) {
  pl_emit emit = {0};
  pl_arena scratch = {0};
  pl_plan_layout layout;
  planc_status status = check_kinds(plan);
  if (!status) status = pl_tables_check_ranges(plan);
  if (!status) status = pl_plan_layout_make(plan, &scratch, &layout);
  if (!status) emit_plan(&emit, plan, &layout);
  pl_arena_free(&scratch);
  pl_emit_fail(&emit, status);
  return pl_emit_take(&emit, out_text, out_length);
}

static void emit_plan(pl_emit *emit, const planc_plan *plan, const pl_plan_layout *layout) {
  emit_header(emit, plan, layout);
  pl_device_emit(emit, &plan->device);
  for (int32_t m = 0; m < plan->n_memories; m++) pl_memory_emit(emit, &plan->memories[m]);
  for (int32_t l = 0; l < plan->n_links; l++) pl_link_emit(emit, &plan->links[l]);
  pl_predictions_emit(emit, &plan->predicted);
  for (int32_t g = 0; g < layout->n_graphs; g++) pl_graph_rows_emit(emit, layout->graphs[g]);
  for (int32_t j = 0; j < plan->n_jobs; j++)
    pl_job_emit(emit, &plan->jobs[j], layout->graph_of_job[j], &plan->predicted.jobs[j]);
  for (int32_t s = 0; s < plan->n_streams; s++) pl_stream_emit(emit, &plan->streams[s]);
  for (int32_t a = 0; a < plan->n_algorithms; a++) pl_algorithm_emit(emit, plan->algorithms[a]);
  for (int32_t b = 0; b < plan->n_boundary; b++) pl_boundary_emit(emit, &plan->boundary[b]);
  for (int32_t m = 0; m < plan->n_mappings; m++) pl_mapping_emit(emit, &plan->mappings[m]);
  emit_instrs(emit, plan, layout->n_instrs);
}

planc_status planc_plan_hash(const planc_plan *plan, uint64_t *out) {
  char *text;
  size_t length;
  PLANC_TRY(planc_plan_print(plan, &text, &length));
  *out = PL_HASH_START;
  pl_hash_bytes(out, text, length);
  free(text);
  return NULL;
}

static void emit_settings(pl_emit *emit, const planc_settings *settings) {
#define X(name, option, kind, least, most, standard, users, help) \
  if (settings->name > 0) EMIT_INT(emit, ",\"" #name "\":", settings->name);
  PLANC_SETTINGS(X)
#undef X
}

static void emit_header(pl_emit *emit, const planc_plan *plan, const pl_plan_layout *layout) {
  EMIT_INT(emit, "{\"planc-plan\":", PLANC_PLAN_VERSION);
  EMIT(emit, ",\"name\":");
  pl_emit_string(emit, plan->name);
  EMIT(emit, ",\"policy\":");
  pl_emit_string(emit, plan->policy);
  emit_settings(emit, &plan->settings);
  if (planc_plan_replicas(plan) > 1) EMIT_INT(emit, ",\"replicas\":", planc_plan_replicas(plan));
  EMIT_INT(emit, ",\"memories\":", plan->n_memories);
  EMIT_INT(emit, ",\"links\":", plan->n_links);
  EMIT_INT(emit, ",\"graphs\":", layout->n_graphs);
  EMIT_INT(emit, ",\"tensors\":", layout->n_tensors);
  EMIT_INT(emit, ",\"ops\":", layout->n_ops);
  EMIT_INT(emit, ",\"jobs\":", plan->n_jobs);
  EMIT_INT(emit, ",\"streams\":", plan->n_streams);
  EMIT_INT(emit, ",\"algorithms\":", plan->n_algorithms);
  EMIT_INT(emit, ",\"boundary\":", plan->n_boundary);
  EMIT_INT(emit, ",\"maps\":", plan->n_mappings);
  EMIT_INT(emit, ",\"residencies\":", plan->n_residencies);
  EMIT_INT(emit, ",\"events\":", plan->n_events);
  EMIT_INT(emit, ",\"uses\":", plan->n_uses);
  EMIT_INT(emit, ",\"prologue\":", plan->prologue.n);
  EMIT_INT(emit, ",\"body\":", plan->body.n);
  EMIT_INT(emit, ",\"epilogue\":", plan->epilogue.n);
  EMIT(emit, "}\n");
}

static void emit_instrs(pl_emit *emit, const planc_plan *plan, int64_t n_instrs) {
  int32_t used = 0;
  bool in_order = true;
  for (int64_t i = 0; i < n_instrs && in_order && !emit->failure; i++) {
    const planc_instr *instr = pl_plan_instr_at(plan, i);
    int32_t n_uses = 0;
    if (instr->op == PLANC_INSTR_exec) {
      n_uses = pl_plan_uses_at(plan, i);
      in_order = n_uses >= 0 && instr->first_use == used;
      used += n_uses;
    }
    if (in_order) pl_instr_emit(emit, plan, instr, n_uses);
  }
  if (in_order && used == plan->n_uses) return;
  pl_emit_fail(emit, planc_error(PLANC_INTERNAL, "a plan whose uses are not in the order of its execs"));
}

static planc_status check_kinds(const planc_plan *plan) {
  for (int32_t m = 0; m < plan->n_memories; m++)
    if ((uint32_t)plan->memories[m].kind >= PLANC_N_MEMORY_KINDS)
      return planc_error(PLANC_INVALID_PLAN, "memory %d is of no known kind", m);
  for (int32_t s = 0; s < plan->n_streams; s++)
    if ((uint32_t)plan->streams[s].kind > PLANC_STREAM_KIND_copy)
      return planc_error(PLANC_INVALID_PLAN, "stream %d is of no known kind", s);
  return NULL;
}
