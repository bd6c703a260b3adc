/* Tables in plans (table_rows.h). One function writes and one reads each kind of row; they stand side by side because
 * they must agree byte for byte. */
#include "plan/table_rows.h"

#include <stdlib.h>

#include "plan/job_name.h"
#include "util/label.h"
#include "util/vec.h"

#define X(name) #name,
static const char *const stream_kinds[] = {PLANC_STREAM_KINDS(X)};
#undef X
#define X(id, name) name,
static const char *const memory_kinds[] = {PLANC_MEMORY_KINDS(X)};
#undef X

/* --- Device ------------------------------------------------------------------------------------------------------- */

void pl_device_emit(pl_emit *emit, const planc_plan_device *device) {
  EMIT(emit, "{\"device\":");
  pl_emit_string(emit, device->name);
  EMIT_INT(emit, ",\"launch\":", device->launch_ns);
  EMIT_INT(emit, ",\"in_flight\":", device->in_flight);
  EMIT_INT(emit, ",\"duplex\":", device->duplex_ppm);
  EMIT_INT(emit, ",\"slowdown\":", device->slowdown_ppm);
  EMIT(emit, "}\n");
}

planc_status pl_device_read(pl_row *row, planc_plan_device *out) {
  PLANC_TRY(ROW_LITERAL(row, "{\"device\":"));
  PLANC_TRY(pl_row_name(row, pl_label_fault, &out->name));
  PLANC_TRY(ROW_INT64(row, ",\"launch\":", 0, PL_ROW_MAX, &out->launch_ns));
  PLANC_TRY(ROW_INT32(row, ",\"in_flight\":", 0, INT32_MAX, &out->in_flight));
  PLANC_TRY(ROW_INT64(row, ",\"duplex\":", 1, 1000000, &out->duplex_ppm));
  PLANC_TRY(ROW_INT64(row, ",\"slowdown\":", 0, PLANC_PLAN_MAX_SLOWDOWN, &out->slowdown_ppm));
  return ROW_END(row, "}");
}

/* --- Memories ----------------------------------------------------------------------------------------------------- */

void pl_memory_emit(pl_emit *emit, const planc_memory *memory) {
  EMIT(emit, "{\"memory\":");
  pl_emit_string(emit, memory_kinds[memory->kind]);
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

/* Which kinds may follow a memory: devices, the host, the storage or none, the user's. */
static bool may_follow(const planc_memory *before, planc_memory_kind kind) {
  if (!before || before->kind == PLANC_MEMORY_DEVICE)
    return kind == PLANC_MEMORY_DEVICE || (before && kind == PLANC_MEMORY_HOST);
  return before->kind < kind;
}

static planc_status read_sizes(pl_row *row, const planc_plan *plan, planc_memory *memory) {
  PLANC_TRY(ROW_INT64(row, ",\"bytes\":", -1, PL_ROW_MAX, &memory->bytes));
  PLANC_TRY(ROW_INT64(row, ",\"budget\":", -1, PL_ROW_MAX, &memory->budget_bytes));
  PLANC_TRY(ROW_INT64(row, ",\"reserved\":", 0, PL_ROW_MAX, &memory->reserved_bytes));
  PLANC_TRY(ROW_INT64(row, ",\"arena\":", 0, PL_ROW_MAX, &memory->arena_bytes));
  PLANC_TRY(ROW_INT64(row, ",\"align\":", PLANC_ALIGNMENT, PLANC_PLAN_MAX_ALIGNMENT, &memory->alignment));
  if (memory->alignment % PLANC_ALIGNMENT != 0)
    return pl_row_error(row, row->at, "an alignment that is not a multiple of %d", PLANC_ALIGNMENT);
  if (memory->kind != PLANC_MEMORY_DEVICE || !ROW_ACCEPTS(row, ",\"chunk\":")) return NULL;
  PLANC_TRY(pl_row_int(row, 1, PL_ROW_MAX, &memory->chunk_bytes));
  PLANC_TRY(ROW_INT32(row, ",\"maps\":", 0, plan->n_mappings - memory->first_mapping, &memory->n_mappings));
  memory->paged = ROW_ACCEPTS(row, ",\"paged\":1");
  return NULL;
}

planc_status pl_memory_read(pl_row *row, const planc_plan *plan, int32_t m, int32_t first_mapping, planc_memory *out) {
  int32_t kind;
  *out = (planc_memory){
      .gpu = -1, .bytes = -1, .budget_bytes = -1, .alignment = PLANC_ALIGNMENT, .first_mapping = first_mapping};
  PLANC_TRY(ROW_LITERAL(row, "{\"memory\":"));
  const char *place = row->at;
  PLANC_TRY(pl_row_word(row, memory_kinds, PLANC_N_MEMORY_KINDS, &kind));
  out->kind = (planc_memory_kind)kind;
  if (!may_follow(m > 0 ? &plan->memories[m - 1] : NULL, out->kind))
    return pl_row_error(row, place, "memories come in the order of devices, host, storage, user");
  if (out->kind == PLANC_MEMORY_DEVICE) PLANC_TRY(ROW_INT32(row, ",\"gpu\":", m, m, &out->gpu));
  if (out->kind != PLANC_MEMORY_USER) PLANC_TRY(read_sizes(row, plan, out));
  return ROW_END(row, "}");
}

/* --- Links -------------------------------------------------------------------------------------------------------- */

void pl_link_emit(pl_emit *emit, const planc_plan_link *link) {
  EMIT_INT(emit, "{\"link\":[", link->from);
  EMIT_INT(emit, ",", link->to);
  EMIT_INT(emit, "],\"engine\":", link->engine);
  EMIT_INT(emit, ",\"rate\":", link->cost.bytes_per_second);
  EMIT_INT(emit, ",\"latency\":", link->cost.latency_ns);
  if (link->bus >= 0) EMIT_INT(emit, ",\"bus\":", link->bus);
  EMIT(emit, "}\n");
}

planc_status pl_link_read(pl_row *row, const planc_plan *plan, planc_plan_link *out) {
  *out = (planc_plan_link){.bus = -1};
  PLANC_TRY(ROW_INT32(row, "{\"link\":[", 0, plan->n_memories - 1, &out->from));
  PLANC_TRY(ROW_INT32(row, ",", 0, plan->n_memories - 1, &out->to));
  PLANC_TRY(ROW_INT32(row, "],\"engine\":", 0, plan->n_links - 1, &out->engine));
  PLANC_TRY(ROW_INT64(row, ",\"rate\":", 1, PL_ROW_MAX, &out->cost.bytes_per_second));
  PLANC_TRY(ROW_INT64(row, ",\"latency\":", 0, PL_ROW_MAX, &out->cost.latency_ns));
  if (ROW_ACCEPTS(row, ",\"bus\":")) {
    int64_t bus;
    PLANC_TRY(pl_row_int(row, 0, (int64_t)plan->n_links - 1, &bus));
    out->bus = (int32_t)bus;
  }
  return ROW_END(row, "}");
}

/* --- Predictions -------------------------------------------------------------------------------------------------- */

void pl_predictions_emit(pl_emit *emit, const planc_predictions *predicted) {
  EMIT_INT(emit, "{\"period\":", predicted->period_ns);
  EMIT_INT(emit, ",\"bound\":", predicted->bound_ns);
  EMIT(emit, "}\n");
}

planc_status pl_predictions_read(pl_row *row, planc_predictions *out) {
  PLANC_TRY(ROW_INT64(row, "{\"period\":", 0, PL_ROW_MAX, &out->period_ns));
  PLANC_TRY(ROW_INT64(row, ",\"bound\":", 0, PL_ROW_MAX, &out->bound_ns));
  return ROW_END(row, "}");
}

/* --- Jobs --------------------------------------------------------------------------------------------------------- */

void pl_job_emit(pl_emit *emit, const planc_job *job, int32_t graph, const planc_job_predictions *predicted) {
  EMIT_INT(emit, "{\"job\":", graph);
  EMIT_INT(emit, ",\"batch\":", job->batch);
  EMIT(emit, ",\"rounds\":");
  pl_emit_longs(emit, job->rounds, job->n_rounds);
  EMIT_INT(emit, ",\"iterations\":", job->iterations);
  EMIT_INT(emit, ",\"ideal\":", predicted->ideal_ns);
  EMIT_INT(emit, ",\"busy\":", predicted->busy_ns);
  EMIT_INT(emit, ",\"stall\":", predicted->stall_ns);
  if (job->priority > 0) EMIT_INT(emit, ",\"priority\":", job->priority);
#define X(name, ...) \
  if (job->name > 0) EMIT_INT(emit, ",\"" #name "\":", job->name);
  PLANC_EACH_SETTINGS(X)
#undef X
  if (job->name) {
    EMIT(emit, ",\"name\":");
    pl_emit_string(emit, job->name);
  }
  if (job->order) {
    EMIT(emit, ",\"order\":");
    pl_emit_ints(emit, job->order, job->graph->n_ops);
  }
  EMIT(emit, "}\n");
}

static planc_status read_rounds(pl_row *row, planc_job *job);
static planc_status read_order(pl_row *row, planc_job *job);
static planc_status read_priority(pl_row *row, planc_job *job);

planc_status pl_job_read(pl_row *row, planc_graph *const *graphs, int32_t n_graphs, const planc_settings *of_all,
                         int32_t *out_graph, planc_job *out, planc_job_predictions *out_predicted) {
  *out = (planc_job){0};
  PLANC_TRY(ROW_INT32(row, "{\"job\":", 0, n_graphs - 1, out_graph));
  out->graph = graphs[*out_graph];
  PLANC_TRY(ROW_INT64(row, ",\"batch\":", 1, PL_ROW_MAX, &out->batch));
  PLANC_TRY(read_rounds(row, out));
  PLANC_TRY(ROW_INT32(row, ",\"iterations\":", 1, INT32_MAX, &out->iterations));
  PLANC_TRY(ROW_INT64(row, ",\"ideal\":", 0, PL_ROW_MAX, &out_predicted->ideal_ns));
  PLANC_TRY(ROW_INT64(row, ",\"busy\":", 0, PL_ROW_MAX, &out_predicted->busy_ns));
  PLANC_TRY(ROW_INT64(row, ",\"stall\":", 0, PL_ROW_MAX, &out_predicted->stall_ns));
  if (ROW_ACCEPTS(row, ",\"priority\":")) PLANC_TRY(read_priority(row, out));
#define X(name, option, kind, least, most, standard, users, help) \
  if (of_all->name == 0 && ROW_ACCEPTS(row, ",\"" #name "\":")) PLANC_TRY(pl_row_int(row, least, most, &out->name));
  PLANC_EACH_SETTINGS(X)
#undef X
  if (ROW_ACCEPTS(row, ",\"name\":")) PLANC_TRY(pl_row_name(row, pl_job_name_fault, &out->name));
  if (ROW_ACCEPTS(row, ",\"order\":[")) PLANC_TRY(read_order(row, out));
  return ROW_END(row, "}");
}

static planc_status read_rounds(pl_row *row, planc_job *job) {
  VEC(int64_t) rounds = {0};
  planc_status status = ROW_LITERAL(row, ",\"rounds\":[");
  while (!status && (rounds.len == 0 || !ROW_ACCEPTS(row, "]"))) {
    int64_t samples;
    if (rounds.len) status = ROW_LITERAL(row, ",");
    if (!status) status = pl_row_int(row, 1, job->batch, &samples);
    if (!status && rounds.len == INT32_MAX) status = pl_row_error(row, row->at, "too many rounds");
    if (!status && rounds.len == rounds.cap) status = VEC_RESERVE(&rounds, rounds.len + 1);
    if (!status) rounds.data[rounds.len++] = samples;
  }
  int64_t *copy = NULL;
  if (!status) status = PL_NEW(row->arena, &copy, rounds.len);
  if (!status && rounds.len) memcpy(copy, rounds.data, (size_t)rounds.len * sizeof *copy);
  job->rounds = copy;
  job->n_rounds = (int32_t)rounds.len;
  VEC_FREE(&rounds);
  return status;
}

/* An order names every op of the graph once. Before it is trusted to be as long as the graph the rest of the file must
 * be: a job's order takes at least two bytes an op. */
static planc_status read_order(pl_row *row, planc_job *job) {
  enum { SHORTEST_OP = 2 };
  int32_t n_ops = job->graph->n_ops, *order;
  if ((row->end - row->at) / SHORTEST_OP < n_ops) {
    return pl_row_error(row, row->at, "the order is shorter than the graph");
  }
  bool *seen = calloc((size_t)n_ops + 1, sizeof *seen);
  if (!seen) return planc_error(PLANC_OUT_OF_MEMORY, "out of memory");
  planc_status status = PL_NEW(row->arena, &order, n_ops);
  for (int32_t i = 0; i < n_ops && !status; i++) {
    int64_t op = 0;
    if (i) status = ROW_LITERAL(row, ",");
    const char *place = row->at;
    if (!status) status = pl_row_int(row, 0, (int64_t)n_ops - 1, &op);
    if (!status && seen[op]) status = pl_row_error(row, place, "op %lld stands twice", (long long)op);
    if (status) break;
    seen[op] = true;
    order[i] = (int32_t)op;
  }
  free(seen);
  if (status) return status;
  job->order = order;
  return ROW_LITERAL(row, "]");
}

/* 0 is left out. */
static planc_status read_priority(pl_row *row, planc_job *job) {
  int64_t priority;
  PLANC_TRY(pl_row_int(row, 1, PLANC_MAX_PRIORITY, &priority));
  job->priority = (int32_t)priority;
  return NULL;
}

/* --- Streams ------------------------------------------------------------------------------------------------------ */

void pl_stream_emit(pl_emit *emit, const planc_stream *stream) {
  EMIT(emit, "{\"stream\":");
  pl_emit_string(emit, stream_kinds[stream->kind]);
  EMIT_INT(emit, ",\"job\":", stream->job);
  if (stream->kind == PLANC_STREAM_KIND_compute) {
    EMIT_INT(emit, ",\"memory\":", stream->on);
  } else {
    EMIT_INT(emit, ",\"engine\":", stream->on);
  }
  EMIT(emit, "}\n");
}

planc_status pl_stream_read(pl_row *row, const planc_plan *plan, planc_stream *out) {
  int32_t kind;
  PLANC_TRY(ROW_LITERAL(row, "{\"stream\":"));
  PLANC_TRY(pl_row_word(row, stream_kinds, sizeof stream_kinds / sizeof *stream_kinds, &kind));
  out->kind = (planc_stream_kind)kind;
  PLANC_TRY(ROW_INT32(row, ",\"job\":", 0, plan->n_jobs - 1, &out->job));
  if (out->kind == PLANC_STREAM_KIND_compute) {
    PLANC_TRY(ROW_INT32(row, ",\"memory\":", 0, plan->n_memories - 1, &out->on));
  } else {
    PLANC_TRY(ROW_INT32(row, ",\"engine\":", 0, plan->n_links - 1, &out->on));
  }
  return ROW_END(row, "}");
}

/* --- Algorithms, boundary, mappings ------------------------------------------------------------------------------- */

void pl_algorithm_emit(pl_emit *emit, const char *algorithm) {
  EMIT(emit, "{\"algorithm\":");
  pl_emit_string(emit, algorithm);
  EMIT(emit, "}\n");
}

planc_status pl_algorithm_read(pl_row *row, const char **out) {
  PLANC_TRY(ROW_LITERAL(row, "{\"algorithm\":"));
  PLANC_TRY(pl_row_name(row, pl_label_fault, out));
  return ROW_END(row, "}");
}

void pl_boundary_emit(pl_emit *emit, const planc_boundary *boundary) {
  EMIT_INT(emit, "{\"boundary\":", boundary->buffer);
  EMIT_INT(emit, ",\"m\":", boundary->memory);
  EMIT_INT(emit, ",\"at\":", boundary->address);
  EMIT(emit, "}\n");
}

planc_status pl_boundary_read(pl_row *row, const planc_plan *plan, planc_boundary *out) {
  PLANC_TRY(ROW_INT32(row, "{\"boundary\":", 0, INT32_MAX, &out->buffer));
  PLANC_TRY(ROW_INT32(row, ",\"m\":", 0, plan->n_memories - 1, &out->memory));
  PLANC_TRY(ROW_INT64(row, ",\"at\":", 0, PL_ROW_MAX, &out->address));
  return ROW_END(row, "}");
}

void pl_mapping_emit(pl_emit *emit, const planc_mapping *mapping) {
  EMIT_INT(emit, "{\"map\":", mapping->first);
  EMIT_INT(emit, ",\"chunks\":", mapping->n);
  EMIT(emit, "}\n");
}

planc_status pl_mapping_read(pl_row *row, planc_mapping *out) {
  PLANC_TRY(ROW_INT64(row, "{\"map\":", 0, PL_ROW_MAX, &out->first));
  PLANC_TRY(ROW_INT64(row, ",\"chunks\":", 1, PL_ROW_MAX, &out->n));
  return ROW_END(row, "}");
}
