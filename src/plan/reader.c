/* Reading plans, planc-plan(5). A strict pull scanner (row.h says why) in one pass over the text. The header's counts
 * are held against the file's lines and length before anything is allocated by them; from then on every index in the
 * file is checked against them, so that whoever walks a plan that was read stays inside its arrays. */
#include <stdlib.h>

#include "graph/spec.h"
#include "plan/graph_rows.h"
#include "plan/instr_rows.h"
#include "plan/plan_memory.h"
#include "plan/row.h"
#include "util/file.h"
#include "util/label.h"
#include "util/vec.h"

#define X(name) #name,
static const char *const stream_kinds[] = {PLANC_STREAM_KINDS(X)};
#undef X

/* No row is shorter: {"algorithm":""} and the line's end. */
enum { SHORTEST_ROW = 17, SHORTEST_USE = 2 };

typedef struct reading {
  planc_row row;
  planc_plan *plan;
  int32_t n_graphs;
  planc_graph_budget left; /* tensor and op rows that graphs still may take */
  int64_t first_graph_line;
} reading;

/* --- Header --------------------------------------------------------------------------------------------------- */

static planc_status read_hash(planc_row *row, uint64_t *out) {
  *out = 0;
  for (int i = 0; i < 16; i++, row->at++) {
    int digit = row->at < row->end ? planc_row_hex(*row->at) : -1;
    if (digit < 0) return planc_row_error(row, row->at, "expected 16 hexadecimal digits");
    *out = *out << 4 | (uint64_t)digit;
  }
  return NULL;
}

static planc_status read_version(planc_row *row) {
  static const char beginning[] = "{\"planc-plan\":";
  int64_t version;
  if (!planc_row_accepts(row, beginning, sizeof beginning - 1))
    return planc_row_error(row, row->at, "no plan: it does not begin with %s", beginning);
  const char *place = row->at;
  PLANC_TRY(planc_row_int(row, 0, PLANC_ROW_MAX, &version));
  if (version == PLANC_PLAN_VERSION) return NULL;
  return planc_row_error(row, place, "plan format %lld is not known; this planc reads format %d", (long long)version,
                         PLANC_PLAN_VERSION);
}

/* Names are printed: what terminals and logs would obey is none. */
static planc_status read_name(planc_row *row, const char *(*fault_of)(const char *), const char **out) {
  const char *place = row->at;
  PLANC_TRY(planc_row_string(row, out));
  const char *fault = fault_of(*out);
  return fault ? planc_row_error(row, place, "the name %s", fault) : NULL;
}

static planc_status read_settings(planc_row *row, planc_settings *out) {
  static const int64_t most_bytes = PLANC_ROW_MAX, most_share = 1000000, most_flag = 1;
#define X(name, option, kind, users, fallback, help) \
  if (ROW_ACCEPTS(row, ",\"" #name "\":")) PLANC_TRY(planc_row_int(row, 1, most_##kind, &out->name));
  PLANC_SETTINGS(X)
#undef X
  return NULL;
}

static planc_status read_header(reading *r) {
  planc_row *row = &r->row;
  planc_plan *plan = r->plan;
  int32_t n_prologue, n_body, n_epilogue;
  PLANC_TRY(read_version(row));
  PLANC_TRY(ROW_LITERAL(row, ",\"name\":"));
  PLANC_TRY(read_name(row, planc_name_fault, &plan->name));
  PLANC_TRY(ROW_LITERAL(row, ",\"policy\":"));
  PLANC_TRY(read_name(row, planc_label_fault, &plan->policy));
  PLANC_TRY(read_settings(row, &plan->settings));
  PLANC_TRY(ROW_LITERAL(row, ",\"hash\":\""));
  PLANC_TRY(read_hash(row, &plan->graph_hash));
  PLANC_TRY(ROW_INT64(row, "\",\"budget\":", 0, PLANC_ROW_MAX, &plan->budget_bytes));
  PLANC_TRY(ROW_INT64(row, ",\"host_budget\":", -1, PLANC_ROW_MAX, &plan->host_budget_bytes));
  PLANC_TRY(ROW_INT64(row, ",\"arena\":", 0, PLANC_ROW_MAX, &plan->arena_bytes));
  PLANC_TRY(ROW_INT64(row, ",\"host_arena\":", 0, PLANC_ROW_MAX, &plan->host_arena_bytes));
  if (ROW_ACCEPTS(row, ",\"chunk\":")) {
    PLANC_TRY(planc_row_int(row, 1, PLANC_ROW_MAX, &plan->chunk_bytes));
    PLANC_TRY(ROW_INT32(row, ",\"mappings\":", 0, INT32_MAX, &plan->n_mappings));
    plan->paged = ROW_ACCEPTS(row, ",\"paged\":1");
  }
  PLANC_TRY(ROW_INT32(row, ",\"gpus\":", 1, PLANC_PLAN_MAX_STREAMS, &plan->gpus));
  plan->shared_link = ROW_ACCEPTS(row, ",\"shared_link\":1");
  PLANC_TRY(ROW_INT32(row, ",\"graphs\":", 1, PLANC_PLAN_MAX_JOBS, &r->n_graphs));
  PLANC_TRY(ROW_INT32(row, ",\"tensors\":", 0, INT32_MAX, &r->left.tensors));
  PLANC_TRY(ROW_INT32(row, ",\"ops\":", 0, INT32_MAX, &r->left.ops));
  PLANC_TRY(ROW_INT32(row, ",\"jobs\":", 1, PLANC_PLAN_MAX_JOBS, &plan->n_jobs));
  PLANC_TRY(ROW_INT32(row, ",\"streams\":", 0, PLANC_PLAN_MAX_STREAMS, &plan->n_streams));
  PLANC_TRY(ROW_INT32(row, ",\"algorithms\":", 0, INT32_MAX, &plan->n_algorithms));
  PLANC_TRY(ROW_INT32(row, ",\"boundary\":", 0, INT32_MAX, &plan->n_boundary));
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

/* Holds the header's counts against the text: its lines and what can stand in them. */
static planc_status check_counts(const reading *r, const char *text, size_t length) {
  const planc_plan *plan = r->plan;
  int64_t lines = 0, instrs = (int64_t)plan->prologue.n + plan->body.n + plan->epilogue.n;
  int64_t rows = 3 + (int64_t)r->n_graphs + r->left.tensors + r->left.ops + plan->n_jobs + plan->n_streams +
                 plan->n_algorithms + plan->n_boundary + plan->n_mappings + instrs;
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

static planc_status read_device(planc_row *row, planc_device *device) {
  PLANC_TRY(ROW_LITERAL(row, "{\"device\":"));
  PLANC_TRY(read_name(row, planc_label_fault, &device->name));
  PLANC_TRY(ROW_INT64(row, ",\"memory\":", 0, PLANC_ROW_MAX, &device->memory_bytes));
  PLANC_TRY(ROW_INT64(row, ",\"reserved\":", 0, PLANC_ROW_MAX, &device->reserved_bytes));
  PLANC_TRY(ROW_INT64(row, ",\"launch\":", 0, PLANC_ROW_MAX, &device->launch_ns));
  PLANC_TRY(ROW_INT32(row, ",\"in_flight\":", 0, INT32_MAX, &device->in_flight));
  PLANC_TRY(ROW_INT64(row, ",\"h2d\":[", 0, PLANC_ROW_MAX, &device->h2d.bytes_per_second));
  PLANC_TRY(ROW_INT64(row, ",", 0, PLANC_ROW_MAX, &device->h2d.latency_ns));
  PLANC_TRY(ROW_INT64(row, "],\"d2h\":[", 0, PLANC_ROW_MAX, &device->d2h.bytes_per_second));
  PLANC_TRY(ROW_INT64(row, ",", 0, PLANC_ROW_MAX, &device->d2h.latency_ns));
  PLANC_TRY(ROW_INT64(row, "],\"duplex\":", 0, PLANC_ROW_MAX, &device->duplex_ppm));
  PLANC_TRY(ROW_INT64(row, ",\"slowdown\":", 0, PLANC_ROW_MAX, &device->slowdown_ppm));
  return ROW_END(row, "}");
}

static planc_status read_predictions(planc_row *row, planc_predictions *predicted) {
  PLANC_TRY(ROW_INT64(row, "{\"iteration\":", 0, PLANC_ROW_MAX, &predicted->iteration_ns));
  PLANC_TRY(ROW_INT64(row, ",\"ideal\":", 0, PLANC_ROW_MAX, &predicted->ideal_ns));
  PLANC_TRY(ROW_INT64(row, ",\"bound\":", 0, PLANC_ROW_MAX, &predicted->bound_ns));
  PLANC_TRY(ROW_INT64(row, ",\"peak\":", 0, PLANC_ROW_MAX, &predicted->peak_bytes));
  PLANC_TRY(ROW_INT64(row, ",\"host_peak\":", 0, PLANC_ROW_MAX, &predicted->host_peak_bytes));
  PLANC_TRY(ROW_INT64(row, ",\"d2h\":", 0, PLANC_ROW_MAX, &predicted->d2h_bytes));
  PLANC_TRY(ROW_INT64(row, ",\"h2d\":", 0, PLANC_ROW_MAX, &predicted->h2d_bytes));
  PLANC_TRY(ROW_INT64(row, ",\"recompute\":", 0, PLANC_ROW_MAX, &predicted->recompute_ns));
  PLANC_TRY(ROW_INT64(row, ",\"stall\":", 0, PLANC_ROW_MAX, &predicted->stall_ns));
  return ROW_END(row, "}");
}

/* --- Graphs, jobs, streams, algorithms, boundary -------------------------------------------------------------- */

static planc_status read_graphs(reading *r) {
  struct planc_plan_memory *memory = r->plan->memory;
  r->first_graph_line = r->row.number;
  PLANC_TRY(PLANC_NEW(&memory->arena, &memory->graphs, r->n_graphs));
  for (int32_t g = 0; g < r->n_graphs; g++) {
    PLANC_TRY(planc_graph_rows_read(&r->row, &r->left, &memory->graphs[g]));
    memory->n_graphs = g + 1;
  }
  if (r->left.tensors || r->left.ops) {
    return planc_row_error(&r->row, r->row.at, "the graphs have fewer tensors or ops than the header counts");
  }
  uint64_t hash = planc_graph_hash(memory->graphs[0]);
  if (hash == r->plan->graph_hash) return NULL;
  return planc_error(PLANC_BAD_INPUT, "%s:1:1: the header's hash %016llx is not that of the graph, %016llx",
                     r->row.path, (unsigned long long)r->plan->graph_hash, (unsigned long long)hash);
}

static planc_status read_rounds(reading *r, planc_job *job) {
  VEC(int64_t) rounds = {0};
  planc_status status = ROW_LITERAL(&r->row, ",\"rounds\":[");
  while (!status && !ROW_ACCEPTS(&r->row, "]")) {
    int64_t samples;
    if (rounds.len) status = ROW_LITERAL(&r->row, ",");
    if (!status) status = planc_row_int(&r->row, 1, job->batch, &samples);
    if (!status && rounds.len == INT32_MAX) status = planc_row_error(&r->row, r->row.at, "too many rounds");
    if (!status && rounds.len == rounds.cap) status = VEC_RESERVE(&rounds, rounds.len + 1);
    if (!status) rounds.data[rounds.len++] = samples;
  }
  int64_t *copy = NULL;
  if (!status) status = PLANC_NEW(r->row.arena, &copy, rounds.len);
  if (!status && rounds.len) memcpy(copy, rounds.data, (size_t)rounds.len * sizeof *copy);
  job->rounds = copy;
  job->n_rounds = (int32_t)rounds.len;
  VEC_FREE(&rounds);
  return status;
}

/* An order names every op of the graph once. Before it is trusted to be as long as the graph the rest of the file must
 * be: a job's order takes at least two bytes an op. */
static planc_status read_order(reading *r, planc_job *job) {
  int32_t n_ops = job->graph->n_ops, *order;
  if ((r->row.end - r->row.at) / SHORTEST_USE < n_ops) {
    return planc_row_error(&r->row, r->row.at, "the order is shorter than the graph");
  }
  bool *seen = calloc((size_t)n_ops + 1, sizeof *seen);
  if (!seen) return planc_error(PLANC_OUT_OF_MEMORY, "out of memory");
  planc_status status = PLANC_NEW(r->row.arena, &order, n_ops);
  for (int32_t i = 0; i < n_ops && !status; i++) {
    int64_t op = 0;
    if (i) status = ROW_LITERAL(&r->row, ",");
    const char *place = r->row.at;
    if (!status) status = planc_row_int(&r->row, 0, (int64_t)n_ops - 1, &op);
    if (!status && seen[op]) status = planc_row_error(&r->row, place, "op %lld stands twice", (long long)op);
    if (status) break;
    seen[op] = true;
    order[i] = (int32_t)op;
  }
  free(seen);
  if (status) return status;
  job->order = order;
  return ROW_LITERAL(&r->row, "]");
}

static planc_status read_jobs(reading *r) {
  planc_job *jobs;
  int32_t n_named = 0; /* graphs that jobs have named, in order */
  PLANC_TRY(PLANC_NEW(r->row.arena, &jobs, r->plan->n_jobs));
  r->plan->jobs = jobs;
  for (int32_t j = 0; j < r->plan->n_jobs; j++) {
    planc_job *job = &jobs[j];
    int32_t graph;
    PLANC_TRY(ROW_INT32(&r->row, "{\"job\":", 0, n_named < r->n_graphs ? n_named : r->n_graphs - 1, &graph));
    if (graph == n_named) n_named++;
    job->graph = r->plan->memory->graphs[graph];
    PLANC_TRY(ROW_INT64(&r->row, ",\"batch\":", 1, PLANC_ROW_MAX, &job->batch));
    PLANC_TRY(read_rounds(r, job));
    PLANC_TRY(ROW_INT32(&r->row, ",\"iterations\":", 1, INT32_MAX, &job->iterations));
    if (ROW_ACCEPTS(&r->row, ",\"replica\":")) {
      int64_t replica;
      PLANC_TRY(planc_row_int(&r->row, 0, PLANC_PLAN_MAX_JOBS - 1, &replica));
      job->replica = (int32_t)replica;
      PLANC_TRY(ROW_INT32(&r->row, ",\"replicas\":", 2, PLANC_PLAN_MAX_JOBS, &job->replicas));
    }
    if (ROW_ACCEPTS(&r->row, ",\"order\":[")) PLANC_TRY(read_order(r, job));
    PLANC_TRY(ROW_END(&r->row, "}"));
  }
  if (n_named < r->n_graphs) return planc_row_error(&r->row, r->row.at, "graph %d belongs to no job", n_named);
  return NULL;
}

static planc_status read_streams(reading *r) {
  planc_stream *streams;
  PLANC_TRY(PLANC_NEW(r->row.arena, &streams, r->plan->n_streams));
  r->plan->streams = streams;
  for (int32_t s = 0; s < r->plan->n_streams; s++) {
    int32_t kind;
    PLANC_TRY(ROW_LITERAL(&r->row, "{\"stream\":"));
    PLANC_TRY(planc_row_word(&r->row, stream_kinds, sizeof stream_kinds / sizeof *stream_kinds, &kind));
    streams[s].kind = (planc_stream_kind)kind;
    PLANC_TRY(ROW_INT32(&r->row, ",\"job\":", 0, r->plan->n_jobs - 1, &streams[s].job));
    PLANC_TRY(ROW_INT32(&r->row, ",\"gpu\":", 0, r->plan->gpus - 1, &streams[s].gpu));
    PLANC_TRY(ROW_END(&r->row, "}"));
  }
  return NULL;
}

static planc_status read_algorithms(reading *r) {
  const char **algorithms;
  PLANC_TRY(PLANC_NEW(r->row.arena, &algorithms, r->plan->n_algorithms));
  r->plan->algorithms = algorithms;
  for (int32_t a = 0; a < r->plan->n_algorithms; a++) {
    PLANC_TRY(ROW_LITERAL(&r->row, "{\"algorithm\":"));
    PLANC_TRY(read_name(&r->row, planc_label_fault, &algorithms[a]));
    PLANC_TRY(ROW_END(&r->row, "}"));
  }
  return NULL;
}

static planc_status read_boundary(reading *r) {
  planc_boundary *boundary;
  PLANC_TRY(PLANC_NEW(r->row.arena, &boundary, r->plan->n_boundary));
  r->plan->boundary = boundary;
  for (int32_t b = 0; b < r->plan->n_boundary; b++) {
    PLANC_TRY(ROW_INT32(&r->row, "{\"boundary\":", 0, INT32_MAX, &boundary[b].buffer));
    boundary[b].home = ROW_ACCEPTS(&r->row, ",\"home\":");
    if (!boundary[b].home) PLANC_TRY(ROW_LITERAL(&r->row, ",\"at\":"));
    PLANC_TRY(planc_row_int(&r->row, 0, PLANC_ROW_MAX, &boundary[b].address));
    PLANC_TRY(ROW_END(&r->row, "}"));
  }
  return NULL;
}

static planc_status read_mappings(reading *r) {
  planc_mapping *mappings;
  PLANC_TRY(PLANC_NEW(r->row.arena, &mappings, r->plan->n_mappings));
  r->plan->mappings = mappings;
  for (int32_t m = 0; m < r->plan->n_mappings; m++) {
    PLANC_TRY(ROW_INT64(&r->row, "{\"map\":", 0, PLANC_ROW_MAX, &mappings[m].first));
    PLANC_TRY(ROW_INT64(&r->row, ",\"chunks\":", 1, PLANC_ROW_MAX, &mappings[m].n));
    PLANC_TRY(ROW_END(&r->row, "}"));
  }
  return NULL;
}

/* --- Instructions --------------------------------------------------------------------------------------------- */

static planc_status read_instrs(reading *r) {
  planc_section *sections[] = {&r->plan->prologue, &r->plan->body, &r->plan->epilogue};
  int32_t n_uses = 0, *uses;
  PLANC_TRY(PLANC_NEW(r->row.arena, &uses, r->plan->n_uses));
  r->plan->uses = uses;
  for (int k = 0; k < 3; k++) {
    planc_instr *instrs;
    PLANC_TRY(PLANC_NEW(r->row.arena, &instrs, sections[k]->n));
    sections[k]->instrs = instrs;
    for (int32_t i = 0; i < sections[k]->n; i++) {
      PLANC_TRY(planc_instr_read(&r->row, r->plan, uses, &n_uses, &instrs[i]));
    }
  }
  if (n_uses == r->plan->n_uses) return NULL;
  return planc_row_error(&r->row, r->row.at, "the execs have %d uses, the header counts %d", n_uses, r->plan->n_uses);
}

/* --- All ------------------------------------------------------------------------------------------------------ */

static planc_status read_plan(reading *r, const char *text, size_t length) {
  PLANC_TRY(read_header(r));
  PLANC_TRY(check_counts(r, text, length));
  PLANC_TRY(read_device(&r->row, &r->plan->device));
  PLANC_TRY(read_predictions(&r->row, &r->plan->predicted));
  PLANC_TRY(read_graphs(r));
  PLANC_TRY(read_jobs(r));
  PLANC_TRY(read_streams(r));
  PLANC_TRY(read_algorithms(r));
  PLANC_TRY(read_boundary(r));
  PLANC_TRY(read_mappings(r));
  return read_instrs(r);
}

planc_status planc_plan_parse(const char *text, size_t length, const char *path, planc_plan **out) {
  *out = NULL;
  reading r = {.row = {.path = path, .at = text, .end = text + length, .line = text, .number = 1}};
  PLANC_TRY(planc_plan_new(&r.plan));
  r.row.arena = &r.plan->memory->arena;
  planc_status status = read_plan(&r, text, length);
  if (status) {
    planc_plan_free(r.plan);
    return status;
  }
  *out = r.plan;
  return NULL;
}

planc_status planc_plan_read(const char *path, planc_plan **out) {
  char *text;
  size_t length;
  *out = NULL;
  PLANC_TRY(planc_file_read_text(path, PLANC_PLAN_MOST_BYTES, &text, &length));
  planc_status status = planc_plan_parse(text, length, path, out);
  free(text);
  return status;
}
