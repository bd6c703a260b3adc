/* Writing plans, planc-plan(5): the header with the counts of all rows, then section after section, a row per line. */
#include <stdlib.h>

#include "plan/graph_rows.h"
#include "plan/instr_rows.h"
#include "plan/layout.h"
#include "plan/tables.h"
#include "util/hash.h"

#define X(name) #name,
static const char *const stream_kinds[] = {PLANC_STREAM_KINDS(X)};
#undef X
#define X(id, name) name,
static const char *const memory_kinds[] = {PLANC_MEMORY_KINDS(X)};
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
  if (planc_plan_replicas(plan) > 1) EMIT_INT(emit, ",\"replicas\":", planc_plan_replicas(plan));
  EMIT(emit, ",\"hash\":");
  planc_emit_hash(emit, plan->graph_hash);
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

static void emit_device(planc_emit *emit, const planc_plan_device *device) {
  EMIT(emit, "{\"device\":");
  planc_emit_string(emit, device->name);
  EMIT_INT(emit, ",\"launch\":", device->launch_ns);
  EMIT_INT(emit, ",\"in_flight\":", device->in_flight);
  EMIT_INT(emit, ",\"duplex\":", device->duplex_ppm);
  EMIT_INT(emit, ",\"slowdown\":", device->slowdown_ppm);
  EMIT(emit, "}\n");
}

static void emit_memory(planc_emit *emit, const planc_memory *memory) {
  EMIT(emit, "{\"memory\":");
  planc_emit_string(emit, memory_kinds[memory->kind]);
  if (memory->kind == PLANC_MEMORY_DEVICE) EMIT_INT(emit, ",\"gpu\":", memory->gpu);
  if (memory->kind != PLANC_MEMORY_USER) {
    EMIT_INT(emit, ",\"bytes\":", memory->bytes);
    EMIT_INT(emit, ",\"budget\":", memory->budget_bytes);
    EMIT_INT(emit, ",\"reserved\":", memory->reserved_bytes);
    EMIT_INT(emit, ",\"arena\":", memory->arena_bytes);
    EMIT_INT(emit, ",\"align\":", memory->alignment);
  }
  if (memory->chunk_bytes > 0) {
    EMIT_INT(emit, ",\"chunk\":", memory->chunk_bytes);
    EMIT_INT(emit, ",\"maps\":", memory->n_mappings);
    if (memory->paged) EMIT(emit, ",\"paged\":1");
  }
  EMIT(emit, "}\n");
}

static void emit_link(planc_emit *emit, const planc_plan_link *link) {
  EMIT_INT(emit, "{\"link\":[", link->from);
  EMIT_INT(emit, ",", link->to);
  EMIT_INT(emit, "],\"engine\":", link->engine);
  EMIT_INT(emit, ",\"rate\":", link->cost.bytes_per_second);
  EMIT_INT(emit, ",\"latency\":", link->cost.latency_ns);
  if (link->bus >= 0) EMIT_INT(emit, ",\"bus\":", link->bus);
  EMIT(emit, "}\n");
}

static void emit_predictions(planc_emit *emit, const planc_predictions *predicted) {
  EMIT_INT(emit, "{\"iteration\":", predicted->iteration_ns);
  EMIT_INT(emit, ",\"ideal\":", predicted->ideal_ns);
  EMIT_INT(emit, ",\"bound\":", predicted->bound_ns);
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

static void emit_stream(planc_emit *emit, const planc_stream *stream) {
  EMIT(emit, "{\"stream\":");
  planc_emit_string(emit, stream_kinds[stream->kind]);
  EMIT_INT(emit, ",\"job\":", stream->job);
  if (stream->kind == PLANC_STREAM_KIND_compute) {
    EMIT_INT(emit, ",\"memory\":", stream->on);
  } else {
    EMIT_INT(emit, ",\"engine\":", stream->on);
  }
  EMIT(emit, "}\n");
}

static void emit_plan(planc_emit *emit, const planc_plan *plan, const planc_plan_layout *layout) {
  emit_header(emit, plan, layout);
  emit_device(emit, &plan->device);
  for (int32_t m = 0; m < plan->n_memories; m++) emit_memory(emit, &plan->memories[m]);
  for (int32_t l = 0; l < plan->n_links; l++) emit_link(emit, &plan->links[l]);
  emit_predictions(emit, &plan->predicted);
  for (int32_t g = 0; g < layout->n_graphs; g++) planc_graph_rows_emit(emit, layout->graphs[g]);
  for (int32_t j = 0; j < plan->n_jobs; j++) emit_job(emit, &plan->jobs[j], layout->graph_of_job[j]);
  for (int32_t s = 0; s < plan->n_streams; s++) emit_stream(emit, &plan->streams[s]);
  for (int32_t a = 0; a < plan->n_algorithms; a++) {
    EMIT(emit, "{\"algorithm\":");
    planc_emit_string(emit, plan->algorithms[a]);
    EMIT(emit, "}\n");
  }
  for (int32_t b = 0; b < plan->n_boundary; b++) {
    EMIT_INT(emit, "{\"boundary\":", plan->boundary[b].buffer);
    EMIT_INT(emit, ",\"m\":", plan->boundary[b].memory);
    EMIT_INT(emit, ",\"at\":", plan->boundary[b].address);
    EMIT(emit, "}\n");
  }
  for (int32_t m = 0; m < plan->n_mappings; m++) {
    EMIT_INT(emit, "{\"map\":", plan->mappings[m].first);
    EMIT_INT(emit, ",\"chunks\":", plan->mappings[m].n);
    EMIT(emit, "}\n");
  }
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

planc_status planc_plan_print(const planc_plan *plan, char **out_text, size_t *out_length) {
  planc_emit emit = {0};
  planc_arena scratch = {0};
  planc_plan_layout layout;
  planc_status status = check_kinds(plan);
  if (!status) status = planc_tables_check_ranges(plan);
  if (!status) status = planc_plan_layout_make(plan, &scratch, &layout);
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
