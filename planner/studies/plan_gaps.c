/* What became of gaps in a plan (planc/plan_gaps.h): one pass over the body finds the uses of each buffer and how it
 * came back between them, a simulation when they were. */
#include "planc/plan_gaps.h"

#include <stdlib.h>
#include <string.h>

#include "plan/plan_trace.h"
#include "planc/simulate.h"
#include "planc/timeline.h"
#include "planner/analysis/plan_live.h"
#include "util/math.h"
#include "util/range_least.h"

/* What is known of a buffer at some point of the body. */
typedef struct buffer_so_far {
  int32_t first, last;           /* execs that used it, by position; -1 = none yet */
  int32_t first_stay, last_stay; /* in which they did */
  int32_t stay;                  /* that was opened last */
  int32_t restored, restored_at; /* stay and position where an op that ran again wrote it, and nothing has used it
                                    since; -1 = none */
  int64_t restored_ns;           /* of the ops that ran again for that */
  int32_t version;               /* that it holds */
  int32_t at_boundary;           /* the stay that the period begins with; -1 = none */
  bool first_reads;
  bool on_host;     /* the host has what it holds */
  int64_t again_ns; /* as of a gap */
} buffer_so_far;

/* A stay of a buffer on the device: one residency, and those that moves inside the memory hand its data on to. It goes
 * by the number of its first one. */
typedef struct stay {
  int32_t opened, closed; /* positions of the execs that are the first not before that: opened 0 of the boundary,
                             closed n + 1 where it goes on in the next period */
  int32_t filled, saved;  /* the instructions that copied into it from another memory, and out of it; -1 = none did */
  int32_t at;             /* the residency that holds it last */
} stay;

typedef struct finding_gaps {
  const planc_plan *plan;
  const planc_trace *trace;
  pl_arena scratch, *arena;
  const pl_acquired *acquired;
  int32_t n;               /* execs */
  int32_t *exec;           /* by position: index into the body */
  int64_t *free_bytes;     /* by position: of the device's budget */
  int64_t *computed_until; /* by position: when the exec before it on its stream ended */
  planc_span *spans;       /* by instruction of the body */
  int64_t period_ns;
  int32_t *stay_of; /* by residency on the device */
  stay *stays;
  buffer_so_far *buffers;
  const planc_link *in, *out, *fed; /* of the device; NULL = there is none */
  pl_range_least least_free;
  planc_plan_gap *gaps;
  int32_t n_gaps;
} finding_gaps;

typedef struct owned_gaps {
  planc_plan_gaps gaps; /* first: what the caller holds */
  pl_arena arena;
} owned_gaps;

static planc_status find(finding_gaps *f, owned_gaps *out);
static planc_status prepare(finding_gaps *f);
static planc_status simulate(finding_gaps *f);
static void follow_stays(finding_gaps *f);
static planc_status find_between(finding_gaps *f);
static planc_status find_around(finding_gaps *f);
static int by_weight(const void *a, const void *b);

planc_status planc_plan_gaps_of(const planc_plan *plan, planc_plan_gaps **out) {
  planc_trace *trace;
  owned_gaps *owned = calloc(1, sizeof *owned);
  if (!owned) return planc_error(PLANC_OUT_OF_MEMORY, "out of memory");
  planc_status status = pl_plan_expand(plan, &trace);
  if (!status) {
    finding_gaps f = {.plan = plan, .trace = trace, .arena = &owned->arena};
    status = find(&f, owned);
    pl_arena_free(&f.scratch);
    planc_trace_free(trace);
  }
  if (status) {
    planc_plan_gaps_free(&owned->gaps);
    return status;
  }
  *out = &owned->gaps;
  return NULL;
}

void planc_plan_gaps_free(planc_plan_gaps *gaps) {
  owned_gaps *owned = (owned_gaps *)gaps;
  if (!owned) return;
  pl_arena_free(&owned->arena);
  free(owned);
}

const char *planc_gap_way_name(planc_gap_way way) {
  static const char *const names[PLANC_N_GAP_WAYS] = {
#define X(id, word) [PLANC_GAP_##id] = word,
      PLANC_GAP_WAYS(X)
#undef X
  };
  return names[way];
}

static planc_status find(finding_gaps *f, owned_gaps *out) {
  PLANC_TRY(pl_plan_check_names(f->plan, f->trace));
  PLANC_TRY(prepare(f));
  PLANC_TRY(simulate(f));
  follow_stays(f);
  PLANC_TRY(find_between(f));
  PLANC_TRY(find_around(f));
  qsort(f->gaps, (size_t)f->n_gaps, sizeof *f->gaps, by_weight);
  out->gaps = (planc_plan_gaps){f->n_gaps, f->gaps};
  return NULL;
}

/* Equally large ones in the order of the body. */
static int by_weight(const void *a, const void *b) {
  const planc_plan_gap *x = a, *y = b;
  pl_signed_wide more = (pl_signed_wide)y->bytes * y->between_ns - (pl_signed_wide)x->bytes * x->between_ns;
  if (more != 0) return more > 0 ? 1 : -1;
  if (x->from != y->from) return x->from < y->from ? -1 : 1;
  return strcmp(x->name, y->name);
}

/* --- What is known beforehand ------------------------------------------------------------------------------------- */

static const planc_link *link_between(const planc_plan *plan, planc_memory_kind from, planc_memory_kind to) {
  for (int32_t l = 0; l < plan->n_links; l++) {
    const planc_plan_link *link = &plan->links[l];
    if (plan->memories[link->from].kind == from && plan->memories[link->to].kind == to) return &link->cost;
  }
  return NULL;
}

static bool is_on_device(const finding_gaps *f, int32_t memory) {
  return memory >= 0 && f->plan->memories[memory].kind == PLANC_MEMORY_DEVICE;
}

static planc_status prepare(finding_gaps *f) {
  const planc_plan *plan = f->plan;
  pl_acquired *acquired;
  PLANC_TRY(pl_plan_acquired(plan, &f->scratch, &acquired));
  f->acquired = acquired;
  for (int32_t i = 0; i < plan->body.n; i++) f->n += plan->body.instrs[i].op == PLANC_INSTR_exec;
  PLANC_TRY(PL_NEW(&f->scratch, &f->exec, (int64_t)f->n + 1));
  PLANC_TRY(PL_NEW(&f->scratch, &f->free_bytes, (int64_t)f->n + 1));
  PLANC_TRY(PL_NEW(&f->scratch, &f->computed_until, (int64_t)f->n + 1));
  PLANC_TRY(PL_NEW(&f->scratch, &f->spans, plan->body.n));
  PLANC_TRY(PL_NEW(&f->scratch, &f->stay_of, plan->n_residencies));
  PLANC_TRY(PL_NEW(&f->scratch, &f->stays, plan->n_residencies));
  PLANC_TRY(PL_NEW(&f->scratch, &f->buffers, f->trace->n_buffers));
  /* An exec ends at most one gap of each of its operands, and each buffer goes around once. */
  int64_t most = f->trace->n_buffers;
  for (int32_t i = 0; i < plan->body.n; i++) {
    const planc_instr *instr = &plan->body.instrs[i];
    if (instr->op == PLANC_INSTR_exec) most += f->trace->instances[instr->id].n_accesses;
  }
  PLANC_TRY(PL_NEW(f->arena, &f->gaps, most));
  for (int32_t r = 0; r < plan->n_residencies; r++) {
    f->stay_of[r] = r;
    f->stays[r] = (stay){0, f->n + 1, -1, -1, r};
  }
  for (int32_t b = 0; b < f->trace->n_buffers; b++)
    f->buffers[b] = (buffer_so_far){.first = -1,
                                    .last = -1,
                                    .first_stay = -1,
                                    .last_stay = -1,
                                    .stay = -1,
                                    .restored = -1,
                                    .at_boundary = -1,
                                    .again_ns = -1};
  for (int32_t r = 0; r < plan->n_boundary; r++)
    if (is_on_device(f, plan->boundary[r].memory)) f->buffers[plan->boundary[r].buffer].at_boundary = r;
  f->in = link_between(plan, PLANC_MEMORY_HOST, PLANC_MEMORY_DEVICE);
  f->out = link_between(plan, PLANC_MEMORY_DEVICE, PLANC_MEMORY_HOST);
  f->fed = link_between(plan, PLANC_MEMORY_USER, PLANC_MEMORY_DEVICE);
  return NULL;
}

static void see(void *user, const planc_plan *plan, const planc_instr *instr, int64_t start_ns, int64_t end_ns) {
  finding_gaps *f = user;
  bool is_in_body = instr >= plan->body.instrs && instr < plan->body.instrs + plan->body.n;
  if (is_in_body) f->spans[instr - plan->body.instrs] = (planc_span){start_ns, end_ns};
}

static planc_status simulate(finding_gaps *f) {
  planc_simulation simulation;
  planc_simulate_options options = {.visitor = see, .user = f, .settled = true, .steady_only = true};
  PLANC_TRY(planc_simulate(f->plan, &options, &simulation));
  f->period_ns = simulation.period_ns;
  return NULL;
}

/* --- Stays -------------------------------------------------------------------------------------------------------- */

static int64_t limit_of(const planc_memory *memory) {
  int64_t peak = pl_add_saturate(memory->arena_bytes, memory->reserved_bytes);
  return (memory->budget_bytes >= 0 ? memory->budget_bytes : peak) - memory->reserved_bytes;
}

static void follow_copy(finding_gaps *f, int32_t i);

/* What is left of a device's budget at each exec, and when stays begin and end. */
static void follow_stays(finding_gaps *f) {
  const planc_plan *plan = f->plan;
  int64_t live = 0;
  int32_t position = 0;
  for (int32_t b = 0; b < plan->n_boundary; b++)
    if (is_on_device(f, plan->boundary[b].memory)) live += f->trace->buffers[plan->boundary[b].buffer].bytes;
  for (int32_t i = 0; i < plan->body.n; i++) {
    const planc_instr *instr = &plan->body.instrs[i];
    int32_t memory = pl_memory_at(plan, f->acquired, instr);
    if (instr->op == PLANC_INSTR_exec) {
      f->exec[position] = i;
      f->free_bytes[position++] = limit_of(&plan->memories[memory]) - live - instr->bytes;
    } else if (instr->op == PLANC_INSTR_copy) {
      follow_copy(f, i);
    } else if (is_on_device(f, memory)) {
      stay *of = &f->stays[f->stay_of[instr->id]];
      int64_t bytes = f->trace->buffers[f->acquired[instr->id].buffer].bytes;
      bool opens = instr->op == PLANC_INSTR_acquire;
      live += opens ? bytes : -bytes;
      if (opens) of->opened = position;
      if (!opens && of->at == instr->id) of->closed = position;
    }
  }
}

static void follow_copy(finding_gaps *f, int32_t i) {
  const planc_instr *instr = &f->plan->body.instrs[i];
  pl_copy_way way = pl_way_of_copy(f->plan, f->acquired, instr);
  if (way == PL_COPY_IN && instr->id >= 0) f->stays[instr->id].filled = i;
  if (way == PL_COPY_OUT && instr->aux >= 0) f->stays[f->stay_of[instr->aux]].saved = i;
  if (way != PL_COPY_WITHIN || !is_on_device(f, f->acquired[instr->id].memory)) return;
  f->stay_of[instr->id] = f->stay_of[instr->aux];
  f->stays[f->stay_of[instr->aux]].at = instr->id;
}

/* --- Between uses ------------------------------------------------------------------------------------------------- */

static planc_status use(finding_gaps *f, int32_t position, int32_t access, int32_t in, bool again);
static void see_version(finding_gaps *f, const planc_access *access, int32_t position, bool filled);
static planc_status add(finding_gaps *f, int32_t buffer, int32_t to, int32_t in, planc_gap_way way);

static planc_status find_between(finding_gaps *f) {
  const planc_plan *plan = f->plan;
  int64_t *until; /* by stream */
  int32_t position = 0;
  PLANC_TRY(PL_NEW(&f->scratch, &until, plan->n_streams));
  for (int32_t p = 0; p < f->n; p++)
    until[plan->body.instrs[f->exec[p]].stream] = f->spans[f->exec[p]].end_ns - f->period_ns;
  PLANC_TRY(pl_range_least_new(&f->scratch, f->n, &f->least_free));
  pl_range_least_build(&f->least_free, f->free_bytes);
  for (int32_t i = 0; i < plan->body.n; i++) {
    const planc_instr *instr = &plan->body.instrs[i];
    if (instr->op == PLANC_INSTR_acquire && is_on_device(f, instr->memory))
      f->buffers[instr->aux].stay = f->stay_of[instr->id];
    if (instr->op == PLANC_INSTR_copy && instr->aux >= 0 && f->stays[f->stay_of[instr->aux]].saved == i)
      f->buffers[f->acquired[instr->aux].buffer].on_host = true;
    if (instr->op != PLANC_INSTR_exec) continue;
    const planc_instance *instance = &f->trace->instances[instr->id];
    f->computed_until[position] = until[instr->stream];
    until[instr->stream] = f->spans[i].end_ns;
    for (int32_t k = 0; k < instance->n_accesses; k++) {
      int32_t in = plan->uses[instr->first_use + k];
      if (in >= 0) PLANC_TRY(use(f, position, instance->first_access + k, f->stay_of[in], instr->recompute));
    }
    position++;
  }
  return NULL;
}

/* Data that an op only writes was of no use before. What an op that runs again writes is of use when it is read. */
static planc_status use(finding_gaps *f, int32_t position, int32_t access, int32_t in, bool again) {
  const planc_access *of = &f->trace->accesses[access];
  buffer_so_far *buffer = &f->buffers[of->buffer];
  bool filled = in != buffer->last_stay && f->stays[in].filled >= 0;
  if (again && of->write >= 0 && (of->read < 0 || in == buffer->restored)) {
    int64_t ns = f->plan->body.instrs[f->exec[position]].time_ns;
    if (of->read < 0) buffer->restored_at = position;
    buffer->restored_ns = of->read < 0 ? ns : pl_add_saturate(buffer->restored_ns, ns);
    buffer->restored = in;
    return NULL;
  }
  if (buffer->last >= 0 && of->read >= 0) {
    planc_gap_way way = filled ? PLANC_GAP_COPIED : PLANC_GAP_KEPT;
    if (in == buffer->restored) way = PLANC_GAP_AGAIN;
    PLANC_TRY(add(f, of->buffer, position, in, way));
  }
  see_version(f, of, position, filled);
  if (buffer->first < 0) {
    buffer->first = position;
    buffer->first_stay = in;
    buffer->first_reads = of->read >= 0;
  }
  buffer->last = position;
  buffer->last_stay = in;
  buffer->restored = -1;
  return NULL;
}

/* What the buffer holds from then on. */
static void see_version(finding_gaps *f, const planc_access *access, int32_t position, bool filled) {
  buffer_so_far *buffer = &f->buffers[access->buffer];
  if (access->write >= 0) {
    bool restorable = access->read < 0 && planc_trace_recomputable(f->trace, access->instance);
    buffer->again_ns = restorable ? f->plan->body.instrs[f->exec[position]].time_ns : -1;
    buffer->version = access->write;
    buffer->on_host = false;
  } else {
    if (buffer->last < 0) buffer->again_ns = -1;
    buffer->version = access->read;
    buffer->on_host |= filled;
  }
}

/* The stay that a buffer leaves behind its last use; that of the boundary goes on in the next period. */
static int32_t stay_left(const finding_gaps *f, int32_t buffer, bool around) {
  const buffer_so_far *so_far = &f->buffers[buffer];
  bool goes_on = around && f->stays[so_far->last_stay].closed > f->n && so_far->at_boundary >= 0;
  return goes_on ? so_far->at_boundary : so_far->last_stay;
}

/* What persists, from its last use to the first one of the next period. What that one only writes may have been dropped
 * by then: that is no gap. */
static planc_status find_around(finding_gaps *f) {
  for (int32_t b = 0; b < f->trace->n_buffers; b++) {
    const buffer_so_far *buffer = &f->buffers[b];
    if (!(f->trace->buffers[b].flags & PLANC_BUFFER_PERSISTENT) || buffer->last < 0) continue;
    bool from_boundary = buffer->first_stay < f->plan->n_boundary;
    int32_t in = from_boundary && buffer->stay >= 0 ? buffer->stay : buffer->first_stay;
    bool kept = from_boundary && (buffer->stay < 0 || in == buffer->last_stay);
    bool was_copied = buffer->first_reads || f->stays[stay_left(f, b, true)].saved >= 0;
    if (!kept && !was_copied) continue;
    PLANC_TRY(add(f, b, buffer->first, in, kept ? PLANC_GAP_KEPT : PLANC_GAP_COPIED));
  }
  return NULL;
}

/* --- A gap -------------------------------------------------------------------------------------------------------- */

static planc_status name_op(const finding_gaps *f, int32_t position, const char **out);
static int64_t left_at(const finding_gaps *f, int32_t buffer, int32_t left);
static int64_t back_at(const finding_gaps *f, int32_t buffer, int32_t to, int32_t in, planc_gap_way way);
static int32_t least_free(const finding_gaps *f, int32_t first, int32_t end);
static int64_t copies_of(const finding_gaps *f, int32_t buffer, planc_gap_way way, int32_t left);
static int64_t waited_for(const finding_gaps *f, int32_t to, int32_t in);

/* The gap from a buffer's last use so far to the exec at position `to`, which uses it in that stay. */
static planc_status add(finding_gaps *f, int32_t buffer, int32_t to, int32_t in, planc_gap_way way) {
  const planc_buffer *of = &f->trace->buffers[buffer];
  const buffer_so_far *so_far = &f->buffers[buffer];
  bool around = to <= so_far->last;
  int32_t from = f->exec[so_far->last], first = so_far->last + 1, end = around ? to + f->n : to;
  int64_t next_ns = around ? f->period_ns : 0;
  int32_t left = stay_left(f, buffer, around);
  if (first == end) return NULL;
  planc_plan_gap gap = {.buffer = buffer,
                        .job = of->job,
                        .iteration = of->iteration,
                        .round = of->round,
                        .bytes = of->bytes,
                        .from = from,
                        .to = f->exec[to],
                        .way = way,
                        .copies_ns = copies_of(f, buffer, way, left),
                        .again_ns = way == PLANC_GAP_AGAIN ? so_far->restored_ns : so_far->again_ns};
  gap.between_ns = pl_max(0, next_ns + f->spans[gap.to].start_ns - f->spans[from].end_ns);
  if (way != PLANC_GAP_KEPT) {
    first = f->stays[left].closed + (left != so_far->last_stay ? f->n : 0);
    end = f->stays[in].opened;
    if (around && end <= so_far->last) end += f->n;
    gap.away_ns = pl_max(0, back_at(f, buffer, to, in, way) - left_at(f, buffer, left));
  }
  if (way == PLANC_GAP_COPIED) gap.waited_ns = pl_min(gap.between_ns, waited_for(f, to, in));
  int32_t fullest = least_free(f, first, end);
  if (fullest >= 0) {
    gap.free_bytes = f->free_bytes[fullest];
    PLANC_TRY(name_op(f, fullest, &gap.free_op));
  }
  PLANC_TRY(pl_buffer_in_plan(f->plan, f->trace, buffer, f->arena, &gap.name));
  PLANC_TRY(name_op(f, so_far->last, &gap.from_op));
  PLANC_TRY(name_op(f, to, &gap.to_op));
  f->gaps[f->n_gaps++] = gap;
  return NULL;
}

static planc_status name_op(const finding_gaps *f, int32_t position, const char **out) {
  return pl_op_in_plan(f->plan, f->trace, f->plan->body.instrs[f->exec[position]].id, f->arena, out);
}

/* From the start of this period: when its last use so far, and the copy out if there is one, had ended. */
static int64_t left_at(const finding_gaps *f, int32_t buffer, int32_t left) {
  const buffer_so_far *so_far = &f->buffers[buffer];
  int64_t next_ns = left != so_far->last_stay ? f->period_ns : 0;
  int64_t used_ns = f->spans[f->exec[so_far->last]].end_ns;
  int32_t saved = f->stays[left].saved;
  return saved >= 0 ? pl_max(used_ns, next_ns + f->spans[saved].end_ns) : used_ns;
}

/* When it began to come back: before its use at position `to`, or when that began where what brings it is not known, as
 * of what storage sent past the host. */
static int64_t back_at(const finding_gaps *f, int32_t buffer, int32_t to, int32_t in, planc_gap_way way) {
  const buffer_so_far *so_far = &f->buffers[buffer];
  int32_t brings = way == PLANC_GAP_AGAIN ? f->exec[so_far->restored_at] : f->stays[in].filled;
  if (brings < 0) brings = f->exec[to];
  return f->spans[brings].start_ns + (brings < f->exec[so_far->last] ? f->period_ns : 0);
}

/* Of positions first .. end - 1, of which those from n on are the next period's; -1 = there are none. */
static int32_t least_free(const finding_gaps *f, int32_t first, int32_t end) {
  if (first >= end) return -1;
  if (first >= f->n) return pl_range_least_of(&f->least_free, first - f->n, end - f->n);
  if (end <= f->n) return pl_range_least_of(&f->least_free, first, end);
  int32_t late = pl_range_least_of(&f->least_free, first, f->n);
  int32_t early = pl_range_least_of(&f->least_free, 0, end - f->n);
  return f->free_bytes[early] < f->free_bytes[late] ? early : late;
}

static int64_t link_ns(const planc_link *link, int64_t bytes) {
  return link ? planc_link_ns(link, bytes) : 0;
}

static int64_t copies_of(const finding_gaps *f, int32_t buffer, planc_gap_way way, int32_t left) {
  const planc_buffer *of = &f->trace->buffers[buffer];
  const buffer_so_far *so_far = &f->buffers[buffer];
  if (planc_user_holds(of, so_far->version)) return link_ns(f->fed, of->bytes);
  bool out = way == PLANC_GAP_COPIED ? f->stays[left].saved >= 0 : !so_far->on_host;
  return pl_add_saturate(link_ns(f->in, of->bytes), out ? link_ns(f->out, of->bytes) : 0);
}

/* Where the copy in, of this period or the one before, ends behind the op before. */
static int64_t waited_for(const finding_gaps *f, int32_t to, int32_t in) {
  int32_t filled = f->stays[in].filled;
  if (filled < 0) return 0;
  int64_t ended = f->spans[filled].end_ns - (filled > f->exec[to] ? f->period_ns : 0);
  return pl_max(0, pl_min(ended, f->spans[f->exec[to]].start_ns) - f->computed_until[to]);
}
