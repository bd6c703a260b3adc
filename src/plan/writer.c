/* Writing plans, planc-plan(5): the header with the counts of all rows, then section after section, a row per line. */
#include <stdlib.h>

#include "plan/graph_rows.h"
#include "plan/instr_rows.h"
#include "plan/layout.h"
#include "plan/values.h"
#include "util/hash.h"

#define X(name) #name,
static const char *const stream_kinds[] = {PLANC_STREAM_KINDS(X)};
#undef X

static void emit_settings(planc_emit *emit, const planc_settings *settings) {
#define X(name, option, kind, users, fallback, help) \
  if (settings->name > 0) EMIT_INT(emit, ",\"" #name "\":", settings->name);
  PLANC_SETTINGS(X)
#undef X
}

static void emit_header(planc_emit *emit, const planc_plan *plan, const planc_plan_layout *layout) {
  EMIT_INT(emit, "{\"planc-plan\":", PLANC_PLAN_VERSION);
  EMIT(emit, ",\"name\":");
  planc_emit_string(emit, plan->name);
  EMIT(emit, ",\"policy\":");
  planc_emit_string(emit, plan->policy);
  emit_settings(emit, &plan->settings);
  EMIT(emit, ",\"hash\":");
  planc_emit_hash(emit, plan->graph_hash);
  EMIT_INT(emit, ",\"budget\":", plan->budget_bytes);
  EMIT_INT(emit, ",\"host_budget\":", plan->host_budget_bytes);
  EMIT_INT(emit, ",\"arena\":", plan->arena_bytes);
  EMIT_INT(emit, ",\"host_arena\":", plan->host_arena_bytes);
  if (plan->chunk_bytes > 0) {
    EMIT_INT(emit, ",\"chunk\":", plan->chunk_bytes);
    EMIT_INT(emit, ",\"mappings\":", plan->n_mappings);
    if (plan->paged) EMIT(emit, ",\"paged\":1");
  }
  EMIT_INT(emit, ",\"gpus\":", plan->gpus);
  if (plan->shared_link) EMIT(emit, ",\"shared_link\":1");
  EMIT_INT(emit, ",\"graphs\":", layout->n_graphs);
  EMIT_INT(emit, ",\"tensors\":", layout->n_tensors);
  EMIT_INT(emit, ",\"ops\":", layout->n_ops);
  EMIT_INT(emit, ",\"jobs\":", plan->n_jobs);
  EMIT_INT(emit, ",\"streams\":", plan->n_streams);
  EMIT_INT(emit, ",\"algorithms\":", plan->n_algorithms);
  EMIT_INT(emit, ",\"boundary\":", plan->n_boundary);
  EMIT_INT(emit, ",\"residencies\":", plan->n_residencies);
  EMIT_INT(emit, ",\"events\":", plan->n_events);
  EMIT_INT(emit, ",\"uses\":", plan->n_uses);
  EMIT_INT(emit, ",\"prologue\":", plan->prologue.n);
  EMIT_INT(emit, ",\"body\":", plan->body.n);
  EMIT_INT(emit, ",\"epilogue\":", plan->epilogue.n);
  EMIT(emit, "}\n");
}

static void emit_device(planc_emit *emit, const planc_device *device) {
  EMIT(emit, "{\"device\":");
  planc_emit_string(emit, device->name);
  EMIT_INT(emit, ",\"memory\":", device->memory_bytes);
  EMIT_INT(emit, ",\"reserved\":", device->reserved_bytes);
  EMIT_INT(emit, ",\"launch\":", device->launch_ns);
  EMIT_INT(emit, ",\"in_flight\":", device->in_flight);
  EMIT_INT(emit, ",\"h2d\":[", device->h2d.bytes_per_second);
  EMIT_INT(emit, ",", device->h2d.latency_ns);
  EMIT_INT(emit, "],\"d2h\":[", device->d2h.bytes_per_second);
  EMIT_INT(emit, ",", device->d2h.latency_ns);
  EMIT_INT(emit, "],\"duplex\":", device->duplex_ppm);
  EMIT_INT(emit, ",\"slowdown\":", device->slowdown_ppm);
  EMIT(emit, "}\n");
}

static void emit_predictions(planc_emit *emit, const planc_predictions *predicted) {
  EMIT_INT(emit, "{\"iteration\":", predicted->iteration_ns);
  EMIT_INT(emit, ",\"ideal\":", predicted->ideal_ns);
  EMIT_INT(emit, ",\"bound\":", predicted->bound_ns);
  EMIT_INT(emit, ",\"peak\":", predicted->peak_bytes);
  EMIT_INT(emit, ",\"host_peak\":", predicted->host_peak_bytes);
  EMIT_INT(emit, ",\"d2h\":", predicted->d2h_bytes);
  EMIT_INT(emit, ",\"h2d\":", predicted->h2d_bytes);
  EMIT_INT(emit, ",\"recompute\":", predicted->recompute_ns);
  EMIT_INT(emit, ",\"stall\":", predicted->stall_ns);
  EMIT(emit, "}\n");
}

static void emit_job(planc_emit *emit, const planc_job *job, int32_t graph) {
  EMIT_INT(emit, "{\"job\":", graph);
  EMIT_INT(emit, ",\"batch\":", job->batch);
  EMIT(emit, ",\"rounds\":");
  planc_emit_longs(emit, job->rounds, job->n_rounds);
  EMIT_INT(emit, ",\"iterations\":", job->iterations);
  if (job->replicas > 1) {
    EMIT_INT(emit, ",\"replica\":", job->replica);
    EMIT_INT(emit, ",\"replicas\":", job->replicas);
  }
  if (job->order) {
    EMIT(emit, ",\"order\":");
    planc_emit_ints(emit, job->order, job->graph->n_ops);
  }
  EMIT(emit, "}\n");
}

static void emit_instrs(planc_emit *emit, const planc_plan *plan, int64_t n_instrs) {
  int32_t used = 0;
  bool in_order = true;
  for (int64_t i = 0; i < n_instrs && in_order && !emit->failure; i++) {
    const planc_instr *instr = planc_plan_instr_at(plan, i);
    int32_t n_uses = 0;
    if (instr->op == PLANC_INSTR_exec) {
      n_uses = planc_plan_uses_at(plan, i);
      in_order = n_uses >= 0 && instr->first_use == used;
      used += n_uses;
    }
    if (in_order) planc_instr_emit(emit, plan, instr, n_uses);
  }
  if (in_order && used == plan->n_uses) return;
  planc_emit_fail(emit, planc_error(PLANC_INTERNAL, "a plan whose uses are not in the order of its execs"));
}

static void emit_plan(planc_emit *emit, const planc_plan *plan, const planc_plan_layout *layout) {
  emit_header(emit, plan, layout);
  emit_device(emit, &plan->device);
  emit_predictions(emit, &plan->predicted);
  for (int32_t g = 0; g < layout->n_graphs; g++) planc_graph_rows_emit(emit, layout->graphs[g]);
  for (int32_t j = 0; j < plan->n_jobs; j++) emit_job(emit, &plan->jobs[j], layout->graph_of_job[j]);
  for (int32_t s = 0; s < plan->n_streams; s++) {
    EMIT(emit, "{\"stream\":");
    planc_emit_string(emit, stream_kinds[plan->streams[s].kind]);
    EMIT_INT(emit, ",\"job\":", plan->streams[s].job);
    EMIT_INT(emit, ",\"gpu\":", plan->streams[s].gpu);
    EMIT(emit, "}\n");
  }
  for (int32_t a = 0; a < plan->n_algorithms; a++) {
    EMIT(emit, "{\"algorithm\":");
    planc_emit_string(emit, plan->algorithms[a]);
    EMIT(emit, "}\n");
  }
  for (int32_t b = 0; b < plan->n_boundary; b++) {
    EMIT_INT(emit, "{\"boundary\":", plan->boundary[b].buffer);
    if (plan->boundary[b].home) {
      EMIT_INT(emit, ",\"home\":", plan->boundary[b].address);
    } else {
      EMIT_INT(emit, ",\"at\":", plan->boundary[b].address);
    }
    EMIT(emit, "}\n");
  }
  for (int32_t m = 0; m < plan->n_mappings; m++) {
    EMIT_INT(emit, "{\"map\":", plan->mappings[m].first);
    EMIT_INT(emit, ",\"chunks\":", plan->mappings[m].n);
    EMIT(emit, "}\n");
  }
}

planc_status planc_plan_print(const planc_plan *plan, char **out_text, size_t *out_length) {
  planc_emit emit = {0};
  planc_arena scratch = {0};
  planc_plan_layout layout;
  planc_status status = planc_plan_layout_make(plan, &scratch, &layout);
  if (!status) {
    emit_plan(&emit, plan, &layout);
    emit_instrs(&emit, plan, layout.n_instrs);
  }
  planc_arena_free(&scratch);
  planc_emit_fail(&emit, status);
  return planc_emit_take(&emit, out_text, out_length);
}

planc_status planc_plan_hash(const planc_plan *plan, uint64_t *out) {
  char *text;
  size_t length;
  PLANC_TRY(planc_plan_print(plan, &text, &length));
  *out = PLANC_HASH_START;
  planc_hash_bytes(out, text, length);
  free(text);
  return NULL;
}
