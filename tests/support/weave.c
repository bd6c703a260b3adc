#include "tests/support/weave.h"

#include "tests/support/plan_tables.h"
#include "util/math.h"

enum { PROLOGUE, BODY, EPILOGUE };
enum { DEVICE, HOST, STORAGE, N_MEMORIES }; /* of which the last may be the user's */

/* A piece of device memory in use. */
typedef struct piece {
  int64_t address, bytes;
} piece;

typedef struct loom {
  woven *w;
  weave_mode mode;
  VEC(piece) used; /* by address */
  int32_t section, last_stream, n_events, n_residencies;
  int32_t *residency;        /* by buffer: the open one on the device, -1 = none */
  int32_t *away[N_MEMORIES]; /* by buffer: the open one on the host, and in storage, -1 = none */
  int64_t *slot[N_MEMORIES]; /* by buffer: where it lies whenever it is there, -1 = nowhere yet */
  int64_t *address;          /* by residency */
  int32_t *left;             /* by buffer: accesses still to come */
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

/* --- Memory ------------------------------------------------------------------------------------------------------- */

static planc_status take(loom *l, int64_t bytes, int64_t *out_address) {
  int64_t address = 0, at = 0;
  bytes = pl_align_up(bytes, PLANC_ALIGNMENT);
  for (; at < l->used.len && l->used.data[at].address - address < bytes; at++)
    address = l->used.data[at].address + l->used.data[at].bytes;
  VEC_PUSH(&l->used, ((piece){0}));
  for (int64_t i = l->used.len - 1; i > at; i--) l->used.data[i] = l->used.data[i - 1];
  l->used.data[at] = (piece){address, bytes};
  planc_memory *device = &l->w->plan.memories[DEVICE];
  if (address + bytes > device->arena_bytes) device->arena_bytes = address + bytes;
  *out_address = address;
  return NULL;
}

static void give(loom *l, int64_t address) {
  int64_t at = 0;
  while (l->used.data[at].address != address) at++;
  for (l->used.len--; at < l->used.len; at++) l->used.data[at] = l->used.data[at + 1];
}

static planc_status open_at(loom *l, int32_t buffer, int32_t memory, int64_t address, int32_t *out) {
  *out = l->n_residencies++;
  l->address[*out] = address;
  return emit(l, (planc_instr){.op = PLANC_INSTR_acquire,
                               .id = *out,
                               .aux = buffer,
                               .memory = (int16_t)memory,
                               .address = address,
                               .bytes = l->w->trace->buffers[buffer].bytes});
}

static planc_status acquire(loom *l, int32_t buffer) {
  int64_t address;
  PLANC_TRY(take(l, l->w->trace->buffers[buffer].bytes, &address));
  return open_at(l, buffer, DEVICE, address, &l->residency[buffer]);
}

static planc_status acquire_away(loom *l, int32_t buffer, int32_t memory) {
  planc_memory *of = &l->w->plan.memories[memory];
  int64_t *slot = &l->slot[memory][buffer];
  if (*slot < 0) {
    *slot = of->arena_bytes;
    of->arena_bytes += pl_align_up(l->w->trace->buffers[buffer].bytes, PLANC_ALIGNMENT);
  }
  return open_at(l, buffer, memory, *slot, &l->away[memory][buffer]);
}

static planc_status close_at(loom *l, int32_t *residency) {
  int32_t id = *residency;
  *residency = -1;
  return emit(l, (planc_instr){.op = PLANC_INSTR_release, .id = id});
}

static planc_status release(loom *l, int32_t buffer) {
  give(l, l->address[l->residency[buffer]]);
  return close_at(l, &l->residency[buffer]);
}

static planc_status copy(loom *l, int32_t stream, int32_t buffer, int32_t to, int32_t from) {
  PLANC_TRY(hand_over(l, stream));
  return emit(l, (planc_instr){.op = PLANC_INSTR_copy,
                               .stream = (int16_t)stream,
                               .id = to,
                               .aux = from,
                               .bytes = l->w->trace->buffers[buffer].bytes});
}

/* The same behind the last one of every replica. */
static planc_status hand_over_all(loom *l, int32_t stream) {
  PLANC_TRY(hand_over(l, stream));
  return emit(l,
              (planc_instr){.op = PLANC_INSTR_wait, .stream = (int16_t)stream, .id = l->n_events - 1, .peers = true});
}

/* The gradient that all exchange is sent to the host. From there each gets the others', before any of it is written
 * again. */
static planc_status receive(loom *l, int32_t buffer) {
  int32_t gradient = l->w->trace->buffers[buffer].peer, *sent = &l->away[HOST][gradient];
  PLANC_TRY(acquire_away(l, gradient, HOST));
  PLANC_TRY(copy(l, WEAVE_D2H, gradient, *sent, l->residency[gradient]));
  PLANC_TRY(hand_over_all(l, WEAVE_H2D));
  PLANC_TRY(copy(l, WEAVE_H2D, gradient, l->residency[buffer], *sent));
  l->w->sections[l->section].data[l->w->sections[l->section].len - 1].peers = true;
  PLANC_TRY(hand_over_all(l, WEAVE_D2H));
  return close_at(l, sent);
}

static planc_status feed(loom *l, int32_t buffer) {
  return copy(l, WEAVE_H2D, buffer, l->residency[buffer], PLANC_USER);
}

static planc_status deliver(loom *l, int32_t buffer) {
  return copy(l, WEAVE_D2H, buffer, PLANC_USER, l->residency[buffer]);
}

static planc_status offload(loom *l, int32_t buffer) {
  int32_t *on_host = &l->away[HOST][buffer];
  PLANC_TRY(acquire_away(l, buffer, HOST));
  PLANC_TRY(copy(l, WEAVE_D2H, buffer, *on_host, l->residency[buffer]));
  if (l->mode != WEAVE_STORE) return NULL;
  PLANC_TRY(acquire_away(l, buffer, STORAGE));
  PLANC_TRY(copy(l, WEAVE_H2S, buffer, l->away[STORAGE][buffer], *on_host));
  return close_at(l, on_host);
}

static planc_status prefetch(loom *l, int32_t buffer) {
  int32_t *on_host = &l->away[HOST][buffer], *stored = &l->away[STORAGE][buffer];
  if (*stored >= 0) {
    PLANC_TRY(acquire_away(l, buffer, HOST));
    PLANC_TRY(copy(l, WEAVE_S2H, buffer, *on_host, *stored));
    PLANC_TRY(close_at(l, stored));
  }
  PLANC_TRY(copy(l, WEAVE_H2D, buffer, l->residency[buffer], *on_host));
  return close_at(l, on_host);
}

/* Where what persists waits, from the prologue on. */
static planc_status park(loom *l, int32_t buffer, planc_boundary *out) {
  bool stored = l->mode == WEAVE_STORE;
  int32_t *residency = stored ? &l->away[STORAGE][buffer] : &l->residency[buffer];
  PLANC_TRY(stored ? acquire_away(l, buffer, STORAGE) : acquire(l, buffer));
  *out = (planc_boundary){.buffer = buffer, .memory = stored ? STORAGE : DEVICE, .address = l->address[*residency]};
  return copy(l, stored ? WEAVE_H2S : WEAVE_H2D, buffer, *residency, PLANC_USER);
}

/* Takes it home. What ends the body where it is parked has the number that the prologue gave it. */
static planc_status take_home(loom *l, int32_t row) {
  int32_t buffer = l->w->plan.boundary[row].buffer;
  if (l->mode == WEAVE_STORE) {
    PLANC_TRY(copy(l, WEAVE_S2H, buffer, PLANC_USER, row));
    return emit(l, (planc_instr){.op = PLANC_INSTR_release, .id = row});
  }
  PLANC_TRY(deliver(l, buffer));
  return release(l, buffer);
}

/* --- Ops ---------------------------------------------------------------------------------------------------------- */

/* Makes an accessed buffer resident. */
static planc_status bring(loom *l, int32_t buffer) {
  const planc_buffer *of = &l->w->trace->buffers[buffer];
  if (l->residency[buffer] >= 0) return NULL;
  PLANC_TRY(acquire(l, buffer));
  if (l->away[HOST][buffer] >= 0 || l->away[STORAGE][buffer] >= 0) return prefetch(l, buffer);
  bool fresh = l->left[buffer] == of->n_accesses;
  if (fresh && of->peer >= 0) return receive(l, buffer);
  return fresh && (of->flags & PLANC_BUFFER_FED) ? feed(l, buffer) : NULL;
}

/* What follows an access: results leave after the last, and all but persistent buffers go. */
static planc_status dismiss(loom *l, int32_t buffer) {
  const planc_buffer *of = &l->w->trace->buffers[buffer];
  bool last = --l->left[buffer] == 0;
  if (last && (of->flags & PLANC_BUFFER_RESULT)) PLANC_TRY(deliver(l, buffer));
  bool persists = of->flags & PLANC_BUFFER_PERSISTENT;
  if ((persists && l->mode != WEAVE_STORE) || (!last && l->mode == WEAVE_RESIDENT)) return NULL;
  if (!last || persists) PLANC_TRY(offload(l, buffer));
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

/* --- Sections ----------------------------------------------------------------------------------------------------- */

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
  PLANC_TRY(PL_NEW(&l->w->arena, &boundary, trace->n_buffers));
  l->w->plan.boundary = boundary;
  PLANC_TRY(open_section(l, PROLOGUE));
  for (int32_t b = 0; b < trace->n_buffers; b++) {
    if (!(trace->buffers[b].flags & PLANC_BUFFER_PERSISTENT)) continue;
    PLANC_TRY(park(l, b, &boundary[l->w->plan.n_boundary++]));
  }
  PLANC_TRY(close_section(l));
  PLANC_TRY(open_section(l, BODY));
  for (int32_t i = 0; i < trace->n_instances; i++) PLANC_TRY(run(l, i));
  PLANC_TRY(close_section(l));
  PLANC_TRY(open_section(l, EPILOGUE));
  for (int32_t row = 0; row < l->w->plan.n_boundary; row++) PLANC_TRY(take_home(l, row));
  return close_section(l);
}

static planc_status start(loom *l) {
  const planc_trace *trace = l->w->trace;
  pl_arena *arena = &l->w->arena;
  l->n_events = 1;
  PLANC_TRY(PL_NEW(arena, &l->residency, trace->n_buffers));
  for (int32_t m = HOST; m < N_MEMORIES; m++) {
    PLANC_TRY(PL_NEW(arena, &l->away[m], trace->n_buffers));
    PLANC_TRY(PL_NEW(arena, &l->slot[m], trace->n_buffers));
  }
  PLANC_TRY(PL_NEW(arena, &l->left, trace->n_buffers));
  PLANC_TRY(PL_NEW(arena, &l->address, 4 * (int64_t)trace->n_accesses + trace->n_buffers));
  for (int32_t b = 0; b < trace->n_buffers; b++) {
    l->residency[b] = -1;
    for (int32_t m = HOST; m < N_MEMORIES; m++) l->slot[m][b] = l->away[m][b] = -1;
    l->left[b] = trace->buffers[b].n_accesses;
  }
  return NULL;
}

static const char *const algorithms[] = {"default"};

planc_status weave(const planc_job *job, weave_mode mode, int64_t workspace, woven *out) {
  *out = (woven){.workspace = workspace};
  PLANC_TRY(planc_expand(job, 1, &out->trace));
  planc_plan *plan = &out->plan;
  plan->name = "woven";
  plan->policy = "none";
  plan->device.name = "host";
  plan->n_jobs = 1;
  plan->jobs = out->trace->jobs;
  plan->n_algorithms = 1;
  plan->algorithms = algorithms;
  PLANC_TRY(tables_make(plan, &out->arena, NULL, mode == WEAVE_STORE));
  loom l = {.w = out, .mode = mode};
  planc_status status = start(&l);
  if (!status) status = weave_sections(&l);
  VEC_FREE(&l.used);
  if (status) return status;
  tables_arenas(plan, plan->memories[DEVICE].arena_bytes, plan->memories[HOST].arena_bytes);
  tables_budgets(plan, plan->memories[DEVICE].arena_bytes, -1);
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
  pl_arena_free(&w->arena);
}
