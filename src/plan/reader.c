/* Reading plans, planc-plan(5). A strict pull scanner (row.h says why) in one pass over the text. The header's counts
 * are held against the file's lines and length before anything is allocated by them; from then on every index in the
 * file is checked against them, so that whoever walks a plan that was read stays inside its arrays. */
#include <stdlib.h>

#include "graph/spec.h"
#include "plan/graph_rows.h"
#include "plan/instr_rows.h"
#include "plan/layout.h"
#include "plan/plan_memory.h"
#include "plan/row.h"
#include "util/file.h"
#include "util/label.h"
#include "util/vec.h"

#define X(name) #name,
static const char *const stream_kinds[] = {PLANC_STREAM_KINDS(X)};
#undef X
#define X(id, name) name,
static const char *const memory_kinds[] = {PLANC_MEMORY_KINDS(X)};
#undef X

/* No row is shorter: {"memory":"user"} and the line's end. */
enum { SHORTEST_ROW = 17, SHORTEST_USE = 2 };

typedef struct reading {
  planc_row row;
  planc_plan *plan;
  int32_t n_graphs, n_replicas;
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
  return planc_row_error(row, place, "plan format %lld is not read, only format %d: plan again with this planc",
                         (long long)version, PLANC_PLAN_VERSION);
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

static planc_status read_replicas(planc_row *row, int32_t *out) {
  int64_t n = 0;
  if (ROW_ACCEPTS(row, ",\"replicas\":")) PLANC_TRY(planc_row_int(row, 2, PLANC_PLAN_MAX_REPLICAS, &n));
  *out = (int32_t)n;
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
  PLANC_TRY(read_replicas(row, &r->n_replicas));
  PLANC_TRY(ROW_LITERAL(row, ",\"hash\":\""));
  PLANC_TRY(read_hash(row, &plan->graph_hash));
  PLANC_TRY(ROW_INT32(row, "\",\"memories\":", 3, PLANC_PLAN_MAX_MEMORIES, &plan->n_memories));
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

/* --- Device, memories, links, predictions --------------------------------------------------------------------- */

static planc_status read_device(planc_row *row, planc_plan_device *device) {
  PLANC_TRY(ROW_LITERAL(row, "{\"device\":"));
  PLANC_TRY(read_name(row, planc_label_fault, &device->name));
  PLANC_TRY(ROW_INT64(row, ",\"launch\":", 0, PLANC_ROW_MAX, &device->launch_ns));
  PLANC_TRY(ROW_INT32(row, ",\"in_flight\":", 0, INT32_MAX, &device->in_flight));
  PLANC_TRY(ROW_INT64(row, ",\"duplex\":", 1, 1000000, &device->duplex_ppm));
  PLANC_TRY(ROW_INT64(row, ",\"slowdown\":", 0, PLANC_PLAN_MAX_SLOWDOWN, &device->slowdown_ppm));
  return ROW_END(row, "}");
}

/* Which kinds may follow a memory: devices, the host, the storage or none, the user's. */
static bool may_follow(const planc_memory *before, planc_memory_kind kind) {
  if (!before || before->kind == PLANC_MEMORY_DEVICE)
    return kind == PLANC_MEMORY_DEVICE || (before && kind == PLANC_MEMORY_HOST);
  return before->kind < kind;
}

static planc_status read_sizes(reading *r, planc_memory *memory) {
  planc_row *row = &r->row;
  PLANC_TRY(ROW_INT64(row, ",\"bytes\":", -1, PLANC_ROW_MAX, &memory->bytes));
  PLANC_TRY(ROW_INT64(row, ",\"budget\":", -1, PLANC_ROW_MAX, &memory->budget_bytes));
  PLANC_TRY(ROW_INT64(row, ",\"reserved\":", 0, PLANC_ROW_MAX, &memory->reserved_bytes));
  PLANC_TRY(ROW_INT64(row, ",\"arena\":", 0, PLANC_ROW_MAX, &memory->arena_bytes));
  PLANC_TRY(ROW_INT64(row, ",\"align\":", PLANC_PLAN_ALIGNMENT, PLANC_PLAN_MAX_ALIGNMENT, &memory->alignment));
  if (memory->alignment % PLANC_PLAN_ALIGNMENT != 0)
    return planc_row_error(row, row->at, "an alignment that is not a multiple of %d", PLANC_PLAN_ALIGNMENT);
  if (memory->kind != PLANC_MEMORY_DEVICE || !ROW_ACCEPTS(row, ",\"chunk\":")) return NULL;
  PLANC_TRY(planc_row_int(row, 1, PLANC_ROW_MAX, &memory->chunk_bytes));
  PLANC_TRY(ROW_INT32(row, ",\"maps\":", 0, r->plan->n_mappings - memory->first_mapping, &memory->n_mappings));
  memory->paged = ROW_ACCEPTS(row, ",\"paged\":1");
  return NULL;
}

static planc_status read_memory(reading *r, int32_t m, int32_t first_mapping) {
  planc_row *row = &r->row;
  planc_memory *memory = &r->plan->memories[m];
  int32_t kind;
  *memory = (planc_memory){
      .gpu = -1, .bytes = -1, .budget_bytes = -1, .alignment = PLANC_PLAN_ALIGNMENT, .first_mapping = first_mapping};
  PLANC_TRY(ROW_LITERAL(row, "{\"memory\":"));
  const char *place = row->at;
  PLANC_TRY(planc_row_word(row, memory_kinds, PLANC_N_MEMORY_KINDS, &kind));
  memory->kind = (planc_memory_kind)kind;
  if (!may_follow(m > 0 ? memory - 1 : NULL, memory->kind))
    return planc_row_error(row, place, "memories come in the order of devices, host, storage, user");
  if (memory->kind == PLANC_MEMORY_DEVICE) PLANC_TRY(ROW_INT32(row, ",\"gpu\":", m, m, &memory->gpu));
  if (memory->kind != PLANC_MEMORY_USER) PLANC_TRY(read_sizes(r, memory));
  return ROW_END(row, "}");
}

static planc_status read_memories(reading *r) {
  planc_plan *plan = r->plan;
  int32_t n_mappings = 0;
  PLANC_TRY(PLANC_NEW(r->row.arena, &plan->memories, plan->n_memories));
  for (int32_t m = 0; m < plan->n_memories; m++) {
    PLANC_TRY(read_memory(r, m, n_mappings));
    n_mappings += plan->memories[m].n_mappings;
  }
  if (plan->memories[plan->n_memories - 1].kind != PLANC_MEMORY_USER)
    return planc_row_error(&r->row, r->row.at, "the user's memory is missing");
  if (n_mappings == plan->n_mappings) return NULL;
  return planc_row_error(&r->row, r->row.at, "the memories have %d map rows, the header counts %d", n_mappings,
                         plan->n_mappings);
}

static planc_status read_links(reading *r) {
  planc_row *row = &r->row;
  planc_plan *plan = r->plan;
  PLANC_TRY(PLANC_NEW(row->arena, &plan->links, plan->n_links));
  for (int32_t l = 0; l < plan->n_links; l++) {
    planc_plan_link *link = &plan->links[l];
    link->bus = -1;
    PLANC_TRY(ROW_INT32(row, "{\"link\":[", 0, plan->n_memories - 1, &link->from));
    PLANC_TRY(ROW_INT32(row, ",", 0, plan->n_memories - 1, &link->to));
    PLANC_TRY(ROW_INT32(row, "],\"engine\":", 0, plan->n_links - 1, &link->engine));
    PLANC_TRY(ROW_INT64(row, ",\"rate\":", 1, PLANC_ROW_MAX, &link->cost.bytes_per_second));
    PLANC_TRY(ROW_INT64(row, ",\"latency\":", 0, PLANC_ROW_MAX, &link->cost.latency_ns));
    if (ROW_ACCEPTS(row, ",\"bus\":")) {
      int64_t bus;
      PLANC_TRY(planc_row_int(row, 0, (int64_t)plan->n_links - 1, &bus));
      link->bus = (int32_t)bus;
    }
    PLANC_TRY(ROW_END(row, "}"));
  }
  return NULL;
}

static planc_status read_predictions(planc_row *row, planc_predictions *predicted) {
  PLANC_TRY(ROW_INT64(row, "{\"iteration\":", 0, PLANC_ROW_MAX, &predicted->iteration_ns));
  PLANC_TRY(ROW_INT64(row, ",\"ideal\":", 0, PLANC_ROW_MAX, &predicted->ideal_ns));
  PLANC_TRY(ROW_INT64(row, ",\"bound\":", 0, PLANC_ROW_MAX, &predicted->bound_ns));
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
    job->replicas = r->n_replicas;
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
    if (streams[s].kind == PLANC_STREAM_KIND_compute) {
      PLANC_TRY(ROW_INT32(&r->row, ",\"memory\":", 0, r->plan->n_memories - 1, &streams[s].on));
    } else {
      PLANC_TRY(ROW_INT32(&r->row, ",\"engine\":", 0, r->plan->n_links - 1, &streams[s].on));
    }
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
    PLANC_TRY(ROW_INT32(&r->row, ",\"m\":", 0, r->plan->n_memories - 1, &boundary[b].memory));
    PLANC_TRY(ROW_INT64(&r->row, ",\"at\":", 0, PLANC_ROW_MAX, &boundary[b].address));
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
  PLANC_TRY(read_memories(r));
  PLANC_TRY(read_links(r));
  PLANC_TRY(read_predictions(&r->row, &r->plan->predicted));
  PLANC_TRY(read_graphs(r));
  PLANC_TRY(read_jobs(r));
  planc_plan_find_peaks(r->plan);
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
