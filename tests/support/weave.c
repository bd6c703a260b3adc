#include "tests/support/weave.h"

#include "util/math.h"

enum { PROLOGUE, BODY, EPILOGUE };

/* A piece of device memory in use. */
typedef struct piece {
  int64_t address, bytes;
} piece;

typedef struct loom {
  woven *w;
  weave_mode mode;
  VEC(piece) used; /* by address */
  int32_t section, last_stream, n_events, n_residencies;
  int32_t *residency; /* by buffer: the open one, -1 = none */
  int64_t *slot;      /* by buffer: host address of its copy, -1 = none */
  int64_t *address;   /* by residency */
  int32_t *left;      /* by buffer: accesses still to come */
} loom;

static planc_status emit(loom *l, planc_instr instr) {
  VEC_PUSH(&l->w->sections[l->section], instr);
  return NULL;
}

/* Chains an instruction on `stream` behind the last one. */
static planc_status hand_over(loom *l, int32_t stream) {
  if (l->last_stream != stream) {
    PLANC_TRY(emit(l, (planc_instr){.op = PLANC_INSTR_record, .stream = (int16_t)l->last_stream, .id = l->n_events}));
    PLANC_TRY(emit(l, (planc_instr){.op = PLANC_INSTR_wait, .stream = (int16_t)stream, .id = l->n_events++}));
  }
  l->last_stream = stream;
  return NULL;
}

/* --- Memory ----------------------------------------------------------------------------------------------------- */

static planc_status take(loom *l, int64_t bytes, int64_t *out_address) {
  int64_t address = 0, at = 0;
  bytes = planc_align_up(bytes, PLANC_PLAN_ALIGNMENT);
  for (; at < l->used.len && l->used.data[at].address - address < bytes; at++)
    address = l->used.data[at].address + l->used.data[at].bytes;
  VEC_PUSH(&l->used, ((piece){0}));
  for (int64_t i = l->used.len - 1; i > at; i--) l->used.data[i] = l->used.data[i - 1];
  l->used.data[at] = (piece){address, bytes};
  if (address + bytes > l->w->plan.arena_bytes) l->w->plan.arena_bytes = address + bytes;
  *out_address = address;
  return NULL;
}

static void give(loom *l, int64_t address) {
  int64_t at = 0;
  while (l->used.data[at].address != address) at++;
  for (l->used.len--; at < l->used.len; at++) l->used.data[at] = l->used.data[at + 1];
}

static planc_status acquire(loom *l, int32_t buffer) {
  int64_t address, bytes = l->w->trace->buffers[buffer].bytes;
  int32_t id = l->n_residencies++;
  PLANC_TRY(take(l, bytes, &address));
  l->residency[buffer] = id;
  l->address[id] = address;
  return emit(l, (planc_instr){.op = PLANC_INSTR_acquire, .id = id, .aux = buffer, .address = address, .bytes = bytes});
}

static planc_status release(loom *l, int32_t buffer) {
  int32_t id = l->residency[buffer];
  give(l, l->address[id]);
  l->residency[buffer] = -1;
  return emit(l, (planc_instr){.op = PLANC_INSTR_release, .id = id});
}

static planc_status transfer(loom *l, planc_instr_op op, int32_t buffer, int64_t host) {
  int32_t stream = op == PLANC_INSTR_offload ? WEAVE_D2H : WEAVE_H2D;
  PLANC_TRY(hand_over(l, stream));
  return emit(l, (planc_instr){.op = (uint8_t)op,
                               .stream = (int16_t)stream,
                               .id = l->residency[buffer],
                               .address = host,
                               .bytes = l->w->trace->buffers[buffer].bytes});
}

/* --- Ops -------------------------------------------------------------------------------------------------------- */

/* Makes an accessed buffer resident. */
static planc_status bring(loom *l, int32_t buffer) {
  const planc_buffer *of = &l->w->trace->buffers[buffer];
  if (l->residency[buffer] >= 0) return NULL;
  PLANC_TRY(acquire(l, buffer));
  if (l->slot[buffer] >= 0) return transfer(l, PLANC_INSTR_prefetch, buffer, l->slot[buffer]);
  bool fresh = l->left[buffer] == of->n_accesses;
  return fresh && (of->flags & PLANC_BUFFER_FED) ? transfer(l, PLANC_INSTR_prefetch, buffer, PLANC_USER) : NULL;
}

/* What follows an access: results leave after the last, and all but persistent buffers go. */
static planc_status dismiss(loom *l, int32_t buffer) {
  const planc_buffer *of = &l->w->trace->buffers[buffer];
  bool last = --l->left[buffer] == 0;
  if (last && (of->flags & PLANC_BUFFER_RESULT)) PLANC_TRY(transfer(l, PLANC_INSTR_offload, buffer, PLANC_USER));
  if (of->flags & PLANC_BUFFER_PERSISTENT || (!last && l->mode == WEAVE_RESIDENT)) return NULL;
  if (!last) {
    if (l->slot[buffer] < 0) {
      l->slot[buffer] = l->w->plan.host_arena_bytes;
      l->w->plan.host_arena_bytes += planc_align_up(of->bytes, PLANC_PLAN_ALIGNMENT);
    }
    PLANC_TRY(transfer(l, PLANC_INSTR_offload, buffer, l->slot[buffer]));
  }
  return release(l, buffer);
}

static planc_status run(loom *l, int32_t instance) {
  const planc_instance *of = &l->w->trace->instances[instance];
  const planc_access *accesses = &l->w->trace->accesses[of->first_access];
  int64_t workspace = 0;
  for (int32_t k = 0; k < of->n_accesses; k++) PLANC_TRY(bring(l, accesses[k].buffer));
  PLANC_TRY(hand_over(l, WEAVE_COMPUTE));
  if (l->w->workspace > 0) PLANC_TRY(take(l, l->w->workspace, &workspace));
  planc_instr exec = {.op = PLANC_INSTR_exec,
                      .stream = WEAVE_COMPUTE,
                      .id = instance,
                      .first_use = (int32_t)l->w->uses.len,
                      .address = workspace,
                      .bytes = l->w->workspace};
  PLANC_TRY(emit(l, exec));
  for (int32_t k = 0; k < of->n_accesses; k++) VEC_PUSH(&l->w->uses, l->residency[accesses[k].buffer]);
  if (l->w->workspace > 0) give(l, workspace);
  for (int32_t k = 0; k < of->n_accesses; k++) PLANC_TRY(dismiss(l, accesses[k].buffer));
  return NULL;
}

/* --- Sections --------------------------------------------------------------------------------------------------- */

/* Event 0 closes the chain: the end of one body (or the prologue) to the start of the next (or the epilogue). */
static planc_status open_section(loom *l, int32_t section) {
  l->section = section;
  l->last_stream = WEAVE_COMPUTE;
  if (section == PROLOGUE) return NULL;
  return emit(l, (planc_instr){.op = PLANC_INSTR_wait, .stream = WEAVE_COMPUTE, .lag = 1});
}

static planc_status close_section(loom *l) {
  PLANC_TRY(hand_over(l, WEAVE_COMPUTE));
  if (l->section == EPILOGUE) return NULL;
  return emit(l, (planc_instr){.op = PLANC_INSTR_record, .stream = WEAVE_COMPUTE});
}

static planc_status weave_sections(loom *l) {
  const planc_trace *trace = l->w->trace;
  planc_boundary *boundary;
  PLANC_TRY(PLANC_NEW(&l->w->arena, &boundary, trace->n_buffers));
  l->w->plan.boundary = boundary;
  PLANC_TRY(open_section(l, PROLOGUE));
  for (int32_t b = 0; b < trace->n_buffers; b++) {
    if (!(trace->buffers[b].flags & PLANC_BUFFER_PERSISTENT)) continue;
    PLANC_TRY(acquire(l, b));
    PLANC_TRY(transfer(l, PLANC_INSTR_prefetch, b, PLANC_USER));
    boundary[l->w->plan.n_boundary++] = (planc_boundary){.buffer = b, .address = l->address[l->residency[b]]};
  }
  PLANC_TRY(close_section(l));
  PLANC_TRY(open_section(l, BODY));
  for (int32_t i = 0; i < trace->n_instances; i++) PLANC_TRY(run(l, i));
  PLANC_TRY(close_section(l));
  PLANC_TRY(open_section(l, EPILOGUE));
  for (int32_t b = 0; b < trace->n_buffers; b++) {
    if (l->residency[b] < 0) continue;
    PLANC_TRY(transfer(l, PLANC_INSTR_offload, b, PLANC_USER));
    PLANC_TRY(release(l, b));
  }
  return close_section(l);
}

static planc_status start(loom *l) {
  const planc_trace *trace = l->w->trace;
  planc_arena *arena = &l->w->arena;
  l->n_events = 1;
  PLANC_TRY(PLANC_NEW(arena, &l->residency, trace->n_buffers));
  PLANC_TRY(PLANC_NEW(arena, &l->slot, trace->n_buffers));
  PLANC_TRY(PLANC_NEW(arena, &l->left, trace->n_buffers));
  PLANC_TRY(PLANC_NEW(arena, &l->address, (int64_t)trace->n_accesses + trace->n_buffers));
  for (int32_t b = 0; b < trace->n_buffers; b++) {
    l->residency[b] = -1;
    l->slot[b] = -1;
    l->left[b] = trace->buffers[b].n_accesses;
  }
  return NULL;
}

static const char *const algorithms[] = {"default"};
static const planc_stream streams[] = {
    {PLANC_STREAM_KIND_compute, 0, 0}, {PLANC_STREAM_KIND_h2d, 0, 0}, {PLANC_STREAM_KIND_d2h, 0, 0}};

planc_status weave(const planc_job *job, weave_mode mode, int64_t workspace, woven *out) {
  *out = (woven){.workspace = workspace};
  PLANC_TRY(planc_expand(job, 1, &out->trace));
  planc_plan *plan = &out->plan;
  plan->name = "woven";
  plan->policy = "none";
  plan->device.name = "host";
  plan->gpus = 1;
  plan->graph_hash = planc_graph_hash(job->graph);
  plan->n_jobs = 1;
  plan->jobs = out->trace->jobs;
  plan->n_streams = WEAVE_STREAMS;
  plan->streams = streams;
  plan->n_algorithms = 1;
  plan->algorithms = algorithms;
  loom l = {.w = out, .mode = mode};
  planc_status status = start(&l);
  if (!status) status = weave_sections(&l);
  VEC_FREE(&l.used);
  if (status) return status;
  plan->budget_bytes = plan->arena_bytes;
  plan->host_budget_bytes = -1;
  plan->predicted.peak_bytes = plan->arena_bytes;
  plan->predicted.host_peak_bytes = plan->host_arena_bytes;
  plan->n_events = l.n_events;
  plan->n_residencies = l.n_residencies;
  plan->n_uses = (int32_t)out->uses.len;
  plan->uses = out->uses.data;
  planc_section *sections[] = {&plan->prologue, &plan->body, &plan->epilogue};
  for (int s = 0; s < 3; s++) *sections[s] = (planc_section){(int32_t)out->sections[s].len, out->sections[s].data};
  return NULL;
}

void woven_free(woven *w) {
  for (int s = 0; s < 3; s++) VEC_FREE(&w->sections[s]);
  VEC_FREE(&w->uses);
  planc_trace_free(w->trace);
  planc_arena_free(&w->arena);
}
