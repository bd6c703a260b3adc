/* Reading plans, planc-plan(5). A strict pull scanner (row.h says why) in one pass over the text. The header's counts
 * are held against the file's lines and length before anything is allocated by them; from then on every index in the
 * file is checked against them, so that whoever walks a plan that was read stays inside its arrays. */
#include <stdlib.h>

#include "graph/spec.h"
#include "plan/derived.h"
#include "plan/graph_rows.h"
#include "plan/instr_rows.h"
#include "plan/owned.h"
#include "plan/table_rows.h"
#include "util/file.h"
#include "util/label.h"

typedef struct reading {
  pl_row row;
  planc_plan *plan;
  int32_t n_graphs, n_replicas;
  pl_graph_budget left; /* tensor and op rows that graphs still may take */
} reading;

static planc_status read_plan(reading *r, const char *text, size_t length);
static planc_status read_header(reading *r);
static planc_status check_counts(const reading *r, const char *text, size_t length);
static planc_status read_memories(reading *r);
static planc_status read_links(reading *r);
static planc_status read_graphs(reading *r);
static planc_status read_jobs(reading *r);
static planc_status read_streams(reading *r);
static planc_status read_algorithms(reading *r);
static planc_status read_boundary(reading *r);
static planc_status read_mappings(reading *r);
static planc_status read_instrs(reading *r);

planc_status planc_plan_parse(const char *text, size_t length, const char *path, planc_plan **out) {
  *out = NULL;
  reading r = {.row = {.path = path, .at = text, .end = text + length, .line = text, .number = 1}};
  PLANC_TRY(pl_plan_new(&r.plan));
  r.row.arena = &r.plan->owned->arena;
  planc_status status = read_plan(&r, text, length);
  if (status) {
    planc_plan_free(r.plan);
    return status;
  }
  *out = r.plan;
  return NULL;
}

static planc_status read_plan(reading *r, const char *text, size_t length) {
  PLANC_TRY(read_header(r));
  PLANC_TRY(check_counts(r, text, length));
  PLANC_TRY(pl_device_read(&r->row, &r->plan->device));
  PLANC_TRY(read_memories(r));
  PLANC_TRY(read_links(r));
  PLANC_TRY(pl_predictions_read(&r->row, &r->plan->predicted));
  PLANC_TRY(read_graphs(r));
  PLANC_TRY(read_jobs(r));
  PLANC_TRY(read_streams(r));
  PLANC_TRY(read_algorithms(r));
  PLANC_TRY(read_boundary(r));
  PLANC_TRY(read_mappings(r));
  PLANC_TRY(read_instrs(r));
  return pl_plan_derive(r->plan);
}

planc_status planc_plan_read(const char *path, planc_plan **out) {
  char *text;
  size_t length;
  *out = NULL;
  PLANC_TRY(pl_file_read_text(path, PLANC_PLAN_MAX_BYTES, &text, &length));
  planc_status status = planc_plan_parse(text, length, path, out);
  free(text);
  return status;
}

/* --- Header ------------------------------------------------------------------------------------------------------- */

/* No row is shorter: {"memory":"user"} and the line's end. */
enum { SHORTEST_ROW = 17, SHORTEST_USE = 2 };

static planc_status read_version(pl_row *row);
static planc_status read_settings(pl_row *row, planc_settings *out);
static planc_status read_replicas(pl_row *row, int32_t *out);

static planc_status read_header(reading *r) {
  pl_row *row = &r->row;
  planc_plan *plan = r->plan;
  int32_t n_prologue, n_body, n_epilogue;
  PLANC_TRY(read_version(row));
  PLANC_TRY(ROW_LITERAL(row, ",\"name\":"));
  PLANC_TRY(pl_row_name(row, pl_name_fault, &plan->name));
  PLANC_TRY(ROW_LITERAL(row, ",\"policy\":"));
  PLANC_TRY(pl_row_name(row, pl_label_fault, &plan->policy));
  PLANC_TRY(read_settings(row, &plan->settings));
  PLANC_TRY(read_replicas(row, &r->n_replicas));
  PLANC_TRY(ROW_INT32(row, ",\"memories\":", 3, PLANC_PLAN_MAX_MEMORIES, &plan->n_memories));
  PLANC_TRY(ROW_INT32(row, ",\"links\":", 0, PLANC_PLAN_MAX_LINKS, &plan->n_links));
  PLANC_TRY(ROW_INT32(row, ",\"graphs\":", 1, PLANC_PLAN_MAX_JOBS, &r->n_graphs));
  PLANC_TRY(ROW_INT32(row, ",\"tensors\":", 0, INT32_MAX, &r->left.tensors));
  PLANC_TRY(ROW_INT32(row, ",\"ops\":", 0, INT32_MAX, &r->left.ops));
  PLANC_TRY(ROW_INT32(row, ",\"jobs\":", 1, PLANC_PLAN_MAX_JOBS, &plan->n_jobs));
  PLANC_TRY(ROW_INT32(row, ",\"streams\":", 0, PLANC_PLAN_MAX_STREAMS, &plan->n_streams));
  PLANC_TRY(ROW_INT32(row, ",\"algorithms\":", 0, INT32_MAX, &plan->n_algorithms));
  PLANC_TRY(ROW_INT32(row, ",\"boundary\":", 0, INT32_MAX, &plan->n_boundary));
  PLANC_TRY(ROW_INT32(row, ",\"maps\":", 0, INT32_MAX, &plan->n_mappings));
  PLANC_TRY(ROW_INT32(row, ",\"residencies\":", 0, INT32_MAX, &plan->n_residencies));
  PLANC_TRY(ROW_INT32(row, ",\"events\":", 0, INT32_MAX, &plan->n_events));
  PLANC_TRY(ROW_INT32(row, ",\"uses\":", 0, INT32_MAX, &plan->n_uses));
  PLANC_TRY(ROW_INT32(row, ",\"prologue\":", 0, INT32_MAX, &n_prologue));
  PLANC_TRY(ROW_INT32(row, ",\"body\":", 0, INT32_MAX, &n_body));
  PLANC_TRY(ROW_INT32(row, ",\"epilogue\":", 0, INT32_MAX, &n_epilogue));
  plan->prologue.n = n_prologue;
  plan->body.n = n_body;
  plan->epilogue.n = n_epilogue;
  return ROW_END(row, "}");
}

static planc_status read_version(pl_row *row) {
  static const char beginning[] = "{\"planc-plan\":";
  int64_t version;
  if (!pl_row_accepts(row, beginning, sizeof beginning - 1))
    return pl_row_error(row, row->at, "no plan: it does not begin with %s (planc plan makes one of a graph)",
                        beginning);
  const char *place = row->at;
  PLANC_TRY(pl_row_int(row, 0, PL_ROW_MAX, &version));
  if (version == PLANC_PLAN_VERSION) return NULL;
  return pl_row_error(row, place, "plan format %lld is not read, only format %d: plan again with this planc",
                      (long long)version, PLANC_PLAN_VERSION);
}

static planc_status read_settings(pl_row *row, planc_settings *out) {
#define X(name, option, kind, least, most, standard, users, help) \
  if (ROW_ACCEPTS(row, ",\"" #name "\":")) PLANC_TRY(pl_row_int(row, least, most, &out->name));
  PLANC_SETTINGS(X)
#undef X
  planc_status wrong = planc_settings_check(out), status = NULL;
  if (wrong) status = pl_row_error(row, row->at, "%s", planc_status_message(wrong));
  planc_status_free(wrong);
  return status;
}

static planc_status read_replicas(pl_row *row, int32_t *out) {
  int64_t n = 0;
  if (ROW_ACCEPTS(row, ",\"replicas\":")) PLANC_TRY(pl_row_int(row, 2, PLANC_PLAN_MAX_REPLICAS, &n));
  *out = (int32_t)n;
  return NULL;
}

/* Holds the header's counts against the text: its lines and what can stand in them. */
static planc_status check_counts(const reading *r, const char *text, size_t length) {
  const planc_plan *plan = r->plan;
  int64_t lines = 0, instrs = (int64_t)plan->prologue.n + plan->body.n + plan->epilogue.n;
  int64_t rows = 3 + (int64_t)plan->n_memories + plan->n_links + r->n_graphs + r->left.tensors + r->left.ops +
                 plan->n_jobs + plan->n_streams + plan->n_algorithms + plan->n_boundary + plan->n_mappings + instrs;
  for (const char *at = text; (at = memchr(at, '\n', (size_t)(text + length - at))) != NULL; at++) lines++;
  const char *what = NULL;
  if (lines != rows) {
    return planc_error(PLANC_BAD_INPUT, "%s:1:1: the header counts %lld rows, the file has %lld lines", r->row.path,
                       (long long)rows, (long long)lines);
  }
  if (text[length - 1] != '\n') {
    what = "the file goes on after its last line's end";
  } else if ((uint64_t)rows > length / SHORTEST_ROW || (uint64_t)plan->n_uses > length / SHORTEST_USE) {
    what = "the header counts more than the file has room for";
  } else if (plan->n_residencies < plan->n_boundary || plan->n_residencies > instrs || plan->n_events > instrs) {
    what = "the header's residencies and events do not go with its other counts";
  }
  return what ? planc_error(PLANC_BAD_INPUT, "%s:1:1: %s", r->row.path, what) : NULL;
}

/* --- Tables ------------------------------------------------------------------------------------------------------- */

static planc_status read_memories(reading *r) {
  planc_plan *plan = r->plan;
  int32_t n_mappings = 0;
  PLANC_TRY(PL_NEW(r->row.arena, &plan->memories, plan->n_memories));
  for (int32_t m = 0; m < plan->n_memories; m++) {
    PLANC_TRY(pl_memory_read(&r->row, plan, m, n_mappings, &plan->memories[m]));
    n_mappings += plan->memories[m].n_mappings;
  }
  if (plan->memories[plan->n_memories - 1].kind != PLANC_MEMORY_USER)
    return pl_row_error(&r->row, r->row.at, "the user's memory is missing");
  if (n_mappings == plan->n_mappings) return NULL;
  return pl_row_error(&r->row, r->row.at, "the memories have %d map rows, the header counts %d", n_mappings,
                      plan->n_mappings);
}

static planc_status read_links(reading *r) {
  planc_plan *plan = r->plan;
  PLANC_TRY(PL_NEW(r->row.arena, &plan->links, plan->n_links));
  for (int32_t l = 0; l < plan->n_links; l++) PLANC_TRY(pl_link_read(&r->row, plan, &plan->links[l]));
  return NULL;
}

static planc_status read_graphs(reading *r) {
  planc_plan_owned *owned = r->plan->owned;
  PLANC_TRY(PL_NEW(&owned->arena, &owned->graphs, r->n_graphs));
  for (int32_t g = 0; g < r->n_graphs; g++) {
    PLANC_TRY(pl_graph_rows_read(&r->row, &r->left, &owned->graphs[g]));
    owned->n_graphs = g + 1;
  }
  if (r->left.tensors || r->left.ops) {
    return pl_row_error(&r->row, r->row.at, "the graphs have fewer tensors or ops than the header counts");
  }
  return NULL;
}

static planc_status read_jobs(reading *r) {
  planc_plan *plan = r->plan;
  planc_job *jobs;
  int32_t n_named = 0; /* graphs that jobs have named, in order */
  PLANC_TRY(PL_NEW(r->row.arena, &jobs, plan->n_jobs));
  PLANC_TRY(PL_NEW(r->row.arena, &plan->predicted.jobs, plan->n_jobs));
  plan->jobs = jobs;
  for (int32_t j = 0; j < plan->n_jobs; j++) {
    int32_t graph, n_known = n_named < r->n_graphs ? n_named + 1 : r->n_graphs;
    PLANC_TRY(pl_job_read(&r->row, plan->owned->graphs, n_known, &plan->settings, &graph, &jobs[j],
                          &plan->predicted.jobs[j]));
    if (graph == n_named) n_named++;
    jobs[j].replicas = r->n_replicas;
  }
  if (n_named < r->n_graphs) return pl_row_error(&r->row, r->row.at, "graph %d belongs to no job", n_named);
  return NULL;
}

static planc_status read_streams(reading *r) {
  planc_stream *streams;
  PLANC_TRY(PL_NEW(r->row.arena, &streams, r->plan->n_streams));
  r->plan->streams = streams;
  for (int32_t s = 0; s < r->plan->n_streams; s++) PLANC_TRY(pl_stream_read(&r->row, r->plan, &streams[s]));
  return NULL;
}

static planc_status read_algorithms(reading *r) {
  const char **algorithms;
  PLANC_TRY(PL_NEW(r->row.arena, &algorithms, r->plan->n_algorithms));
  r->plan->algorithms = algorithms;
  for (int32_t a = 0; a < r->plan->n_algorithms; a++) PLANC_TRY(pl_algorithm_read(&r->row, &algorithms[a]));
  return NULL;
}

static planc_status read_boundary(reading *r) {
  planc_boundary *boundary;
  PLANC_TRY(PL_NEW(r->row.arena, &boundary, r->plan->n_boundary));
  r->plan->boundary = boundary;
  for (int32_t b = 0; b < r->plan->n_boundary; b++) PLANC_TRY(pl_boundary_read(&r->row, r->plan, &boundary[b]));
  return NULL;
}

static planc_status read_mappings(reading *r) {
  planc_mapping *mappings;
  PLANC_TRY(PL_NEW(r->row.arena, &mappings, r->plan->n_mappings));
  r->plan->mappings = mappings;
  for (int32_t m = 0; m < r->plan->n_mappings; m++) PLANC_TRY(pl_mapping_read(&r->row, &mappings[m]));
  return NULL;
}

/* --- Instructions ------------------------------------------------------------------------------------------------- */

static planc_status read_instrs(reading *r) {
  planc_section *sections[] = {&r->plan->prologue, &r->plan->body, &r->plan->epilogue};
  int32_t n_uses = 0, *uses;
  PLANC_TRY(PL_NEW(r->row.arena, &uses, r->plan->n_uses));
  r->plan->uses = uses;
  for (int k = 0; k < 3; k++) {
    planc_instr *instrs;
    PLANC_TRY(PL_NEW(r->row.arena, &instrs, sections[k]->n));
    sections[k]->instrs = instrs;
    for (int32_t i = 0; i < sections[k]->n; i++) {
      PLANC_TRY(pl_instr_read(&r->row, r->plan, uses, &n_uses, &instrs[i]));
    }
  }
  if (n_uses == r->plan->n_uses) return NULL;
  return pl_row_error(&r->row, r->row.at, "the execs have %d uses, the header counts %d", n_uses, r->plan->n_uses);
}
