/* The simulator: discrete events over a plan's instructions.
 *
 * Every job has a host that goes through its instructions in file order. Launching an exec or a copy takes launch_ns,
 * and waits while in_flight execs are launched and not finished. Streams are queues. A GPU has one copy engine per
 * direction; of several streams that want it at one time the lowest gets it. The prologue runs, then bodies until two
 * in a row take equally long, then the epilogue; nothing is awaited in between but what the plan awaits.
 *
 * Rates are exact. An exec of time t is t * (1,000,000 + slowdown_ppm) of work, done at 1,000,000 + slowdown_ppm per ns
 * alone and at 1,000,000 beside a copy; where the busy shares of the GPU's execs sum to more than 1,000,000, at that
 * much less in proportion, rounded down. A copy is its time alone * 1,000,000 of work, done at 1,000,000 per ns, and at
 * duplex_ppm beside a copy in the other direction. Where the GPUs share the host link, copies of others count as beside
 * it, and those of one direction run at equal parts of that, rounded down. Ends are rounded up to whole ns.
 *
 * A captured body is launched as a whole: one launch_ns, nothing of it waits in a queue, and what follows it begins
 * when all of it has ended. Where chunks of virtual memory are mapped in the step, the host waits for the execs that it
 * has launched, since what was freed may still be in use, and then takes its time for each chunk. */
#include "planc/simulate.h"

#include <stdlib.h>
#include <string.h>

#include "planner/simulate/launch_queue.h"
#include "planner/simulate/plan_totals.h"
#include "planner/simulate/remap.h"
#include "util/arena.h"
#include "util/math.h"

enum { PPM = 1000000, MAX_BODIES = 8, MAX_PHASES = MAX_BODIES + 2 };

/* The prologue is phase 0, body k is phase k, the epilogue comes after the last body. */
typedef struct phase {
  int32_t left; /* timed instructions that have not ended */
  int64_t start, end, compute_end;
  int64_t stall_ns[PLANC_N_STALLS]; /* since the beginning of time, at compute_end */
  int64_t lost_ns;                  /* by execs, to copies */
  int64_t misses;
  int64_t copy_ns[2];
} phase;

typedef struct host {
  int32_t phase, next; /* the instruction to launch */
  int32_t in_flight;
  bool launching, done;
  int64_t free_at; /* where launching */
} host;

typedef struct lane {
  planc_stream_kind kind;
  int32_t host, gpu;
  int32_t phase, next; /* position in the phase's planc_launch_queue */
  const planc_instr *running;
  int64_t start, work, rate, since, end; /* `work` is what was left at `since` */
  bool beside, crowded;                  /* a copy runs as well; other execs ever took from its share */
  int64_t beside_ns;
} lane;

typedef struct gpu {
  int32_t id;
  int64_t load;          /* busy shares of the execs that run */
  int32_t n_computing;   /* execs that run */
  bool copying[2];       /* by direction */
  int64_t awaited_until; /* the end of the last wait for a copy in */
} gpu;

typedef struct simulation {
  const planc_plan *plan;
  planc_arena arena;
  bool captured;
  int64_t chunk_ns; /* to map or unmap a chunk of virtual memory, -1 = all is mapped */
  int64_t *mapped;  /* by instruction of the body: chunks to map and unmap before its launch; NULL: none */
  planc_launch_queue prologue, body, epilogue;
  host *hosts;
  int32_t *launchers; /* the jobs whose hosts have streams to launch on */
  int32_t n_launchers;
  lane *lanes;
  gpu *gpus;
  int32_t n_gpus;
  int32_t n_copying[2]; /* by direction, on all GPUs */
  int32_t *recorded;    /* by event: the last phase that recorded it, -1 if none */
  int32_t *recorder;    /* by event: the stream that records it in the body, -1 if none */
  phase phases[MAX_PHASES];
  int32_t n_entered, n_closed; /* phases that hosts have come to; that have ended */
  int32_t epilogue_phase;      /* MAX_PHASES while it is open how many bodies run */
  int32_t steady;              /* the body whose period is the steady one, 0 while there is none */
  bool changed, again;         /* rates must be set anew; streams looked at again */
  int64_t now;
  int64_t stall_ns[PLANC_N_STALLS];
  planc_simulation_visitor visitor;
  void *user;
  int32_t visited; /* phase shown to the visitor, -1 = none */
  int64_t origin;
} simulation;

static const planc_launch_queue *queue_of(const simulation *s, int32_t phase_index) {
  if (phase_index == 0) return &s->prologue;
  return phase_index == s->epilogue_phase ? &s->epilogue : &s->body;
}

static bool is_captured(const simulation *s, int32_t phase_index) {
  return s->captured && phase_index > 0 && phase_index != s->epilogue_phase;
}

/* --- Setting up --------------------------------------------------------------------------------------------------- */

static planc_status check_device(const planc_device *device) {
  if (device->launch_ns < 0 || device->duplex_ppm <= 0 || device->duplex_ppm > PPM || device->slowdown_ppm < 0 ||
      device->slowdown_ppm > INT32_MAX || device->h2d.bytes_per_second <= 0 || device->d2h.bytes_per_second <= 0 ||
      device->h2d.latency_ns < 0 || device->d2h.latency_ns < 0)
    return planc_error(PLANC_INVALID_PLAN, "the device's constants are out of range");
  return NULL;
}

/* Any host will do to go through a plan without streams. */
static void find_launchers(simulation *s) {
  for (int32_t i = 0; i < s->plan->n_streams; i++) {
    host *h = &s->hosts[s->plan->streams[i].job];
    if (!h->done) s->launchers[s->n_launchers++] = s->plan->streams[i].job;
    h->done = true;
  }
  if (s->n_launchers == 0) s->launchers[s->n_launchers++] = 0;
}

static planc_status set_up(simulation *s) {
  const planc_plan *plan = s->plan;
  PLANC_TRY(check_device(&plan->device));
  PLANC_TRY(planc_launch_queue_make(plan, &plan->prologue, &s->prologue));
  PLANC_TRY(planc_launch_queue_make(plan, &plan->body, &s->body));
  PLANC_TRY(planc_launch_queue_make(plan, &plan->epilogue, &s->epilogue));
  PLANC_TRY(PLANC_NEW(&s->arena, &s->hosts, plan->n_jobs));
  PLANC_TRY(PLANC_NEW(&s->arena, &s->launchers, (int64_t)plan->n_streams + 1));
  PLANC_TRY(PLANC_NEW(&s->arena, &s->lanes, plan->n_streams));
  PLANC_TRY(PLANC_NEW(&s->arena, &s->gpus, plan->n_streams));
  PLANC_TRY(PLANC_NEW(&s->arena, &s->recorded, plan->n_events));
  PLANC_TRY(PLANC_NEW(&s->arena, &s->recorder, plan->n_events));
  find_launchers(s);
  for (int32_t i = 0; i < plan->n_events; i++) s->recorder[i] = -1;
  for (int32_t i = 0; i < plan->body.n; i++)
    if (plan->body.instrs[i].op == PLANC_INSTR_record)
      s->recorder[plan->body.instrs[i].id] = plan->body.instrs[i].stream;
  return NULL;
}

static void tear_down(simulation *s) {
  planc_launch_queue *queues[] = {&s->prologue, &s->body, &s->epilogue};
  for (int i = 0; i < 3; i++) planc_launch_queue_free(queues[i]);
  planc_arena_free(&s->arena);
  free(s->mapped);
}

/* The state at the beginning of time. */
static void reset(simulation *s) {
  const planc_plan *plan = s->plan;
  s->n_gpus = 0;
  memset(s->n_copying, 0, sizeof s->n_copying);
  for (int32_t j = 0; j < plan->n_jobs; j++) s->hosts[j] = (host){.next = s->prologue.first_launch[j]};
  memset(s->gpus, 0, (size_t)plan->n_streams * sizeof *s->gpus);
  memset(s->phases, 0, sizeof s->phases);
  memset(s->stall_ns, 0, sizeof s->stall_ns);
  for (int32_t i = 0; i < plan->n_events; i++) s->recorded[i] = -1;
  for (int32_t i = 0; i < plan->n_streams; i++) {
    int32_t g = 0;
    while (g < s->n_gpus && s->gpus[g].id != plan->streams[i].gpu) g++;
    if (g == s->n_gpus) s->gpus[s->n_gpus++] = (gpu){.id = plan->streams[i].gpu, .awaited_until = -1};
    s->lanes[i] = (lane){.kind = plan->streams[i].kind, .host = plan->streams[i].job, .gpu = g};
    s->lanes[i].next = s->prologue.first[i];
  }
  s->phases[0].left = s->prologue.n_timed;
  s->phases[0].start = -1;
  s->n_entered = 1;
  s->n_closed = 0;
  s->epilogue_phase = MAX_PHASES;
  s->steady = 0;
  s->now = 0;
}

/* --- The host ----------------------------------------------------------------------------------------------------- */

/* The host goes on to the next phase; the first host there decides whether it is another body. */
static void enter_next_phase(simulation *s, int32_t index) {
  host *h = &s->hosts[index];
  if (h->phase == s->epilogue_phase) {
    h->done = true;
    return;
  }
  h->phase++;
  bool first = h->phase == s->n_entered;
  if (first && (s->steady || h->phase > MAX_BODIES)) s->epilogue_phase = h->phase;
  h->next = queue_of(s, h->phase)->first_launch[index];
  if (!first) return;
  s->phases[h->phase].left = queue_of(s, h->phase)->n_timed;
  s->phases[h->phase].start = -1;
  s->n_entered++;
}

/* Chunks that the host maps and unmaps for the launch that is next. */
static int64_t n_mapped(const simulation *s, const host *h) {
  return s->mapped && queue_of(s, h->phase) == &s->body ? s->mapped[h->next] : 0;
}

/* The host's time for the launch that is next. */
static int64_t launch_ns(const simulation *s, int32_t index) {
  const host *h = &s->hosts[index];
  const planc_launch_queue *q = queue_of(s, h->phase);
  if (is_captured(s, h->phase) && h->next != q->first_launch[index]) return 0;
  return planc_add_saturate(s->plan->device.launch_ns, planc_muldiv_floor(n_mapped(s, h), s->chunk_ns, 1));
}

/* Launches what can be launched by now. */
static void run_host(simulation *s, int32_t index) {
  host *h = &s->hosts[index];
  if (h->launching && h->free_at > s->now) return;
  if (h->launching) h->next = queue_of(s, h->phase)->next_launch[h->next];
  h->launching = false;
  while (!h->done) {
    const planc_launch_queue *q = queue_of(s, h->phase);
    for (; h->next < q->section->n; h->next = q->next_launch[h->next]) {
      bool kernel = planc_instr_is_kernel(&q->section->instrs[h->next]), captured = is_captured(s, h->phase);
      if (kernel && !captured && h->in_flight >= s->plan->device.in_flight && h->in_flight > 0) return;
      if (h->in_flight > 0 && n_mapped(s, h) > 0) return;
      h->in_flight += kernel;
      h->free_at = planc_add_saturate(s->now, launch_ns(s, index));
      h->launching = h->free_at > s->now;
      if (h->launching) return;
    }
    enter_next_phase(s, index);
  }
}

/* --- Streams ------------------------------------------------------------------------------------------------------ */

/* The stream's next instruction, or NULL when it has not been launched. */
static const planc_instr *head(const simulation *s, lane *l) {
  const host *h = &s->hosts[l->host];
  int32_t index = (int32_t)(l - s->lanes);
  for (;;) {
    const planc_launch_queue *q = queue_of(s, l->phase);
    if (l->next < q->first[index + 1]) {
      int32_t at = q->order[l->next];
      return l->phase < h->phase || at < h->next || h->done ? &q->section->instrs[at] : NULL;
    }
    if (l->phase >= h->phase) return NULL;
    if ((is_captured(s, l->phase) || is_captured(s, l->phase + 1)) && s->n_closed <= l->phase) return NULL;
    l->phase++;
    l->next = queue_of(s, l->phase)->first[index];
  }
}

static planc_status start(simulation *s, lane *l, const planc_instr *instr) {
  const planc_device *device = &s->plan->device;
  int64_t time = instr->time_ns, unit = PPM + device->slowdown_ppm;
  gpu *g = &s->gpus[l->gpu];
  if (planc_instr_is_copy(instr)) {
    time = planc_link_ns(planc_instr_direction(instr) ? &device->d2h : &device->h2d, instr->bytes);
    unit = PPM;
    g->copying[planc_instr_direction(instr)] = true;
    s->n_copying[planc_instr_direction(instr)]++;
  } else {
    g->load += instr->busy_ppm < 0 ? 0 : instr->busy_ppm > PPM ? PPM : instr->busy_ppm;
    g->n_computing++;
    s->phases[l->phase].misses += instr->op == PLANC_INSTR_exec && g->awaited_until == s->now;
  }
  if (planc_mul_overflow(time, unit, &l->work))
    return planc_error(PLANC_BAD_INPUT, "a time of %lld ns is too long to simulate", (long long)time);
  if (s->phases[l->phase].start < 0) s->phases[l->phase].start = s->now;
  l->running = instr;
  l->start = l->since = s->now;
  l->rate = 0;
  l->beside = l->crowded = false;
  l->beside_ns = 0;
  s->changed = true;
  return NULL;
}

/* Lets the stream do what it can at this time. */
static planc_status advance(simulation *s, lane *l) {
  while (!l->running) {
    const planc_instr *instr = head(s, l);
    if (!instr) return NULL;
    if (instr->op == PLANC_INSTR_wait) {
      if (s->recorded[instr->id] < l->phase - instr->lag) return NULL;
    } else if (instr->op == PLANC_INSTR_record) {
      s->recorded[instr->id] = l->phase;
      s->again = true;
    } else {
      if (planc_instr_is_copy(instr) && s->gpus[l->gpu].copying[planc_instr_direction(instr)]) return NULL;
      return start(s, l, instr);
    }
    l->next++;
  }
  return NULL;
}

static planc_status advance_all(simulation *s) {
  do {
    s->again = false;
    for (int32_t i = 0; i < s->plan->n_streams; i++)
      if (!s->lanes[i].running) PLANC_TRY(advance(s, &s->lanes[i]));
  } while (s->again);
  return NULL;
}

/* --- Rates -------------------------------------------------------------------------------------------------------- */

static int64_t copy_rate(const simulation *s, const gpu *g, bool direction) {
  bool shared = s->plan->shared_link, duplex = shared ? s->n_copying[!direction] > 0 : g->copying[!direction];
  int64_t rate = (duplex ? s->plan->device.duplex_ppm : PPM) / (shared ? s->n_copying[direction] : 1);
  return rate > 0 ? rate : 1;
}

static int64_t rate_of(const simulation *s, lane *l) {
  const gpu *g = &s->gpus[l->gpu];
  if (planc_instr_is_copy(l->running)) return copy_rate(s, g, planc_instr_direction(l->running));
  int64_t rate = g->copying[0] || g->copying[1] ? PPM : PPM + s->plan->device.slowdown_ppm;
  if (g->load <= PPM) return rate;
  l->crowded = true;
  return rate * PPM / g->load;
}

static planc_status set_rates(simulation *s) {
  for (int32_t i = 0; i < s->plan->n_streams; i++) {
    lane *l = &s->lanes[i];
    if (!l->running) continue;
    const gpu *g = &s->gpus[l->gpu];
    bool beside = g->copying[0] || g->copying[1];
    int64_t rate = rate_of(s, l);
    if (rate == l->rate && beside == l->beside) continue;
    l->work -= l->rate * (s->now - l->since);
    if (l->beside) l->beside_ns += s->now - l->since;
    l->beside = beside;
    l->rate = rate;
    l->since = s->now;
    if (planc_add_overflow(s->now, l->work / rate + (l->work % rate > 0), &l->end))
      return planc_error(PLANC_BAD_INPUT, "the plan takes too long to simulate");
  }
  s->changed = false;
  return NULL;
}

/* --- Ends --------------------------------------------------------------------------------------------------------- */

static int64_t lost_ns(const simulation *s, const lane *l) {
  int64_t slowdown = s->plan->device.slowdown_ppm;
  if (!l->crowded) return s->now - l->start - l->running->time_ns;
  return planc_muldiv_ceil(l->beside_ns, slowdown, PPM + slowdown);
}

static void finish(simulation *s, lane *l) {
  const planc_instr *instr = l->running;
  phase *p = &s->phases[l->phase];
  gpu *g = &s->gpus[l->gpu];
  p->left--;
  p->end = s->now;
  if (planc_instr_is_copy(instr)) {
    g->copying[planc_instr_direction(instr)] = false;
    s->n_copying[planc_instr_direction(instr)]--;
    p->copy_ns[planc_instr_direction(instr)] += s->now - l->start;
  } else {
    if (l->beside) l->beside_ns += s->now - l->since;
    g->load -= instr->busy_ppm < 0 ? 0 : instr->busy_ppm > PPM ? PPM : instr->busy_ppm;
    g->n_computing--;
    s->hosts[l->host].in_flight--;
    p->compute_end = s->now;
    p->lost_ns += lost_ns(s, l);
    memcpy(p->stall_ns, s->stall_ns, sizeof p->stall_ns);
  }
  if (l->phase == s->visited) s->visitor(s->user, s->plan, instr, l->start - s->origin, s->now - s->origin);
  l->running = NULL;
  l->next++;
  s->changed = true;
}

/* Closes the phases that have ended, in order, and sees whether bodies have become periodic: two in a row took equally
 * long, and so did their compute. */
static void close_phases(simulation *s) {
  for (; s->n_closed < s->n_entered && s->phases[s->n_closed].left == 0; s->n_closed++) {
    int32_t k = s->n_closed;
    phase *p = &s->phases[k];
    if (k == 0) continue;
    /* A phase without execs or copies ends with the one before. */
    if (p->end < p[-1].end) p->end = p[-1].end;
    if (p->compute_end < p[-1].compute_end) {
      p->compute_end = p[-1].compute_end;
      memcpy(p->stall_ns, p[-1].stall_ns, sizeof p->stall_ns);
    }
    if (k < 2 || k >= s->epilogue_phase || s->steady) continue;
    if (p->end - p[-1].end == p[-1].end - p[-2].end &&
        p->compute_end - p[-1].compute_end == p[-1].compute_end - p[-2].compute_end)
      s->steady = k;
  }
}

/* --- Stalls ------------------------------------------------------------------------------------------------------- */

/* What an idle stream waits for in the end: follows waits to the stream that will record. */
static planc_stall cause(const simulation *s, lane *l) {
  for (int32_t depth = 0; depth <= s->plan->n_streams; depth++) {
    const planc_instr *instr = l->running ? l->running : head(s, l);
    if (!instr) return PLANC_STALL_LAUNCH;
    if (planc_instr_is_copy(instr)) return planc_instr_direction(instr) ? PLANC_STALL_D2H : PLANC_STALL_H2D;
    if (instr->op != PLANC_INSTR_wait || s->recorder[instr->id] < 0) return PLANC_STALL_LAUNCH;
    l = &s->lanes[s->recorder[instr->id]];
  }
  return PLANC_STALL_LAUNCH;
}

/* Nothing computes on a GPU until `until`: its first compute stream that waits for an event says why, else it is the
 * host. */
static void count_stall(simulation *s, int32_t g, int64_t until) {
  planc_stall why = PLANC_STALL_LAUNCH;
  for (int32_t i = 0; i < s->plan->n_streams; i++) {
    lane *l = &s->lanes[i];
    if (l->kind != PLANC_STREAM_KIND_compute || l->gpu != g || !head(s, l)) continue;
    why = cause(s, l);
    break;
  }
  s->stall_ns[why] += until - s->now;
  if (why == PLANC_STALL_H2D) s->gpus[g].awaited_until = until;
}

static void count_stalls(simulation *s, int64_t until) {
  for (int32_t g = 0; g < s->n_gpus; g++)
    if (s->gpus[g].n_computing == 0) count_stall(s, g, until);
}

/* --- The run ------------------------------------------------------------------------------------------------------ */

static int64_t next_event(const simulation *s) {
  int64_t next = INT64_MAX;
  for (int32_t i = 0; i < s->n_launchers; i++) {
    const host *h = &s->hosts[s->launchers[i]];
    if (h->launching && h->free_at < next) next = h->free_at;
  }
  for (int32_t i = 0; i < s->plan->n_streams; i++)
    if (s->lanes[i].running && s->lanes[i].end < next) next = s->lanes[i].end;
  return next;
}

static planc_status check_ended(const simulation *s) {
  for (int32_t i = 0; i < s->plan->n_streams; i++) {
    const planc_instr *instr = head(s, &s->lanes[i]);
    if (instr) return planc_error(PLANC_INVALID_PLAN, "stream %d waits for ever for event %d", i, instr->id);
  }
  return NULL;
}

static planc_status run(simulation *s) {
  reset(s);
  for (;;) {
    for (int32_t i = 0; i < s->n_launchers; i++) run_host(s, s->launchers[i]);
    if (s->captured) close_phases(s);
    PLANC_TRY(advance_all(s));
    if (s->changed) PLANC_TRY(set_rates(s));
    int64_t next = next_event(s);
    if (next == INT64_MAX) break;
    count_stalls(s, next);
    s->now = next;
    for (int32_t i = 0; i < s->plan->n_streams; i++)
      if (s->lanes[i].running && s->lanes[i].end == next) finish(s, &s->lanes[i]);
    close_phases(s);
  }
  close_phases(s);
  return check_ended(s);
}

/* --- Results ------------------------------------------------------------------------------------------------------ */

static void report(const simulation *s, planc_simulation *out) {
  /* Bodies that do not become periodic are averaged over their second half. */
  int32_t k = s->steady ? s->steady : MAX_BODIES, from = s->steady ? k - 1 : MAX_BODIES / 2;
  const phase *p = &s->phases[k];
  out->prologue_ns = s->phases[0].end;
  out->first_iteration_ns = s->phases[1].end - s->phases[0].end;
  out->iteration_ns = (p->end - s->phases[from].end) / (k - from);
  out->epilogue_ns = s->phases[s->epilogue_phase].end - s->phases[s->epilogue_phase - 1].end;
  int32_t n_gpus = s->n_gpus > 0 ? s->n_gpus : 1;
  out->slowdown_ns = p->lost_ns / n_gpus;
  out->misses = p->misses;
  for (int i = 0; i < PLANC_N_STALLS; i++) out->stall_ns[i] = (p->stall_ns[i] - p[-1].stall_ns[i]) / n_gpus;
  out->h2d_ns = p->copy_ns[0] / n_gpus;
  out->d2h_ns = p->copy_ns[1] / n_gpus;
}

static planc_status simulate(simulation *s, planc_simulation *out) {
  PLANC_TRY(set_up(s));
  if (s->chunk_ns >= 0) PLANC_TRY(planc_count_mappings(s->plan, &s->mapped, &out->mapped_chunks));
  PLANC_TRY(planc_plan_totals(s->plan, out));
  PLANC_TRY(run(s));
  report(s, out);
  if (!s->visitor) return NULL;
  /* Which body is the steady one is known only now: the same again, watched. */
  s->visited = s->steady ? s->steady : MAX_BODIES;
  s->origin = s->phases[s->visited].start;
  return run(s);
}

static planc_status simulate_as(simulation s, planc_simulation *out) {
  *out = (planc_simulation){0};
  planc_status status = simulate(&s, out);
  tear_down(&s);
  return planc_context(status, "simulation");
}

planc_status planc_simulate(const planc_plan *plan, planc_simulation_visitor visitor, void *user,
                            planc_simulation *out) {
  return simulate_as((simulation){.plan = plan, .chunk_ns = -1, .visitor = visitor, .user = user, .visited = -1}, out);
}

planc_status planc_simulate_captured(const planc_plan *plan, planc_simulation *out) {
  return simulate_as((simulation){.plan = plan, .chunk_ns = -1, .captured = true, .visited = -1}, out);
}

planc_status planc_simulate_mapping(const planc_plan *plan, int64_t chunk_ns, planc_simulation *out) {
  *out = (planc_simulation){0};
  if (plan->gpus > 1) return planc_error(PLANC_USAGE, "mapping in the step is simulated on one GPU only");
  return simulate_as((simulation){.plan = plan, .chunk_ns = chunk_ns, .visited = -1}, out);
}
