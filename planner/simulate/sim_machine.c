/* Stepping the machine (sim_machine.h): dispatchers launch, streams begin what is launched and awaited, and time goes
 * on to the next end of a launch, a kernel or a copy.
 *
 * Dispatchers and streams sleep while they can do nothing. Who changes what they wait for wakes them: it puts them into
 * the sets of those that may go on (sim_state). */
#include "planner/simulate/sim_machine.h"

#include <string.h>

#include "util/math.h"

/* A machine with a program on it. */
typedef struct machine {
  const sim_program *program;
  sim_state *state;
  const sim_observer *observer; /* or NULL */
} machine;

static planc_status run_dispatchers(const machine *m);
static void end_launches(const machine *m);
static void begin_all(const machine *m);
static void end_lanes(const machine *m);
static planc_status check_ended(const machine *m);
static void close_stages(const machine *m);
static planc_status set_rates(const machine *m);
static bool find_next_end(const machine *m, int64_t *out);
static void count_stalls(const machine *m, int64_t until);

planc_status sim_advance(const sim_program *program, sim_state *state, const sim_observer *observer, bool *out_over) {
  machine m = {.program = program, .state = state, .observer = observer};
  PLANC_TRY(run_dispatchers(&m));
  begin_all(&m);
  if (state->changed) PLANC_TRY(set_rates(&m));
  int64_t next;
  *out_over = !find_next_end(&m, &next);
  if (*out_over) return check_ended(&m);
  count_stalls(&m, next);
  state->now = next;
  end_launches(&m);
  end_lanes(&m);
  close_stages(&m);
  return NULL;
}

/* What several sections need, at the end of the file. */
static int32_t first_of(const pl_number_set *set);
static int32_t next_of(const pl_number_set *set, int32_t member);
static int32_t section_at(const machine *m, int32_t stage);
static const sim_section *of_dispatcher(const machine *m, const sim_dispatcher *d);
static const sim_section *of_lane(const machine *m, const sim_lane *l);
static bool is_captured(const machine *m, int32_t stage);
static int32_t next_launch(const machine *m, int32_t dispatcher);
static void wake_dispatcher(const machine *m, int32_t dispatcher);
static void wake_streams(const machine *m, const sim_streams *listed, int32_t key);
static planc_status too_long(void);

/* --- Dispatchers -------------------------------------------------------------------------------------------------- */

static planc_status run_dispatcher(const machine *m, int32_t dispatcher);
static bool is_full(const machine *m, const sim_dispatcher *d, int32_t step);
static int64_t launch_ns(const machine *m, const sim_dispatcher *d, int32_t step);
static void tell_launched(const machine *m, const sim_dispatcher *d, int32_t step);
static bool enter_next_stage(const machine *m, int32_t dispatcher);
static int32_t most_ahead(const sim_program *program, int32_t stage);

/* A stage without kernels or copies ends at once, as soon as dispatchers have come to it and the stages before it have
 * ended. Then dispatchers may enter another stage: so they are run until no further stage ends. */
static planc_status run_dispatchers(const machine *m) {
  pl_number_set *may_launch = &m->state->may_launch;
  int32_t closed;
  do {
    closed = m->state->n_closed;
    for (int32_t k = first_of(may_launch); k >= 0; k = next_of(may_launch, k)) {
      pl_number_set_remove(may_launch, k);
      PLANC_TRY(run_dispatcher(m, m->program->dispatchers[k]));
    }
    close_stages(m);
  } while (m->state->n_closed > closed);
  return NULL;
}

/* Launches what can be launched by now. */
static planc_status run_dispatcher(const machine *m, int32_t dispatcher) {
  sim_dispatcher *d = &m->state->dispatchers[dispatcher];
  if (d->launching && d->free_at > m->state->now) return NULL;
  while (!d->done) {
    const sim_section *section = of_dispatcher(m, d);
    for (int32_t step; (step = next_launch(m, dispatcher)) < section->n; d->launched = step) {
      if (!d->launching) {
        if (is_full(m, d, step)) return NULL;
        d->in_flight += section->steps[step].kind == SIM_KERNEL;
        if (pl_add_overflow(m->state->now, launch_ns(m, d, step), &d->free_at)) return too_long();
        d->launching = d->free_at > m->state->now;
        if (d->launching) pl_number_set_add(&m->state->launching, m->program->place_of[dispatcher]);
        if (d->launching) return NULL;
      }
      d->launching = false;
      wake_streams(m, &m->program->of_dispatchers, dispatcher);
      tell_launched(m, d, step);
    }
    if (!enter_next_stage(m, dispatcher)) return NULL;
  }
  return NULL;
}

/* Whether the step cannot be launched before a kernel has ended. Before chunks are mapped for a step its dispatcher
 * waits for all the kernels that it has launched: they may still use the memory that is unmapped for it. */
static bool is_full(const machine *m, const sim_dispatcher *d, int32_t step) {
  if (d->in_flight == 0) return false;
  if (of_dispatcher(m, d)->steps[step].chunks > 0) return true;
  bool kernel = of_dispatcher(m, d)->steps[step].kind == SIM_KERNEL;
  return kernel && !is_captured(m, d->stage) && d->in_flight >= m->program->device.in_flight;
}

static int64_t launch_ns(const machine *m, const sim_dispatcher *d, int32_t step) {
  if (is_captured(m, d->stage) && d->launched >= 0) return 0;
  return sim_launch_ns(m->program, &of_dispatcher(m, d)->steps[step]);
}

static void tell_launched(const machine *m, const sim_dispatcher *d, int32_t step) {
  const sim_observer *observer = m->observer;
  if (!observer || !observer->launched) return;
  observer->launched(observer->user, d->stage, step, d->free_at - launch_ns(m, d, step), d->free_at);
}

/* The dispatcher goes on to the next stage, if it may. The first one there decides whether it is another body. */
static bool enter_next_stage(const machine *m, int32_t dispatcher) {
  sim_state *s = m->state;
  sim_dispatcher *d = &s->dispatchers[dispatcher];
  int32_t stage = d->stage + 1;
  if (d->stage == s->epilogue_stage) {
    d->done = true;
    wake_streams(m, &m->program->of_dispatchers, dispatcher);
    return true;
  }
  if (stage > s->n_closed + most_ahead(m->program, stage)) return false;
  if (stage == s->n_entered) {
    if (stage > s->last_body) s->epilogue_stage = stage;
    s->stages[stage].start = -1;
    s->n_entered++;
  }
  d->stage = stage;
  d->section = section_at(m, stage);
  d->launched = -1;
  wake_streams(m, &m->program->of_dispatchers, dispatcher);
  return true;
}

/* How many stages a dispatcher that enters `stage` may be ahead of the first one that has not ended: none where bodies
 * are APART; one where several jobs stay TOGETHER; for a single job AHEAD, more than ever make a difference. */
static int32_t most_ahead(const sim_program *program, int32_t stage) {
  enum { APART = 0, TOGETHER = 1, AHEAD = 4 };
  if (program->from_rest && stage == 1) return APART;
  return program->apart ? APART : program->n_dispatchers > 1 ? TOGETHER : AHEAD;
}

/* Wakes the dispatchers whose launches are over by now. */
static void end_launches(const machine *m) {
  pl_number_set *launching = &m->state->launching;
  for (int32_t k = first_of(launching); k >= 0; k = next_of(launching, k)) {
    if (m->state->dispatchers[m->program->dispatchers[k]].free_at > m->state->now) continue;
    pl_number_set_remove(launching, k);
    pl_number_set_add(&m->state->may_launch, k);
  }
}

/* --- Streams ------------------------------------------------------------------------------------------------------ */

static void begin_lane(const machine *m, int32_t stream);
static int32_t head(const machine *m, int32_t stream);
static void begin(const machine *m, int32_t stream, int32_t index, const sim_step *step);
static void end_lane(const machine *m, int32_t stream);
static int64_t lost_ns(const machine *m, const sim_lane *l, const sim_step *kernel);

/* A stream that records an event wakes others. Of several streams for one engine the lowest comes first and gets it. */
static void begin_all(const machine *m) {
  pl_number_set *may_begin = &m->state->may_begin;
  while (first_of(may_begin) >= 0) {
    for (int32_t s = first_of(may_begin); s >= 0; s = next_of(may_begin, s)) {
      pl_number_set_remove(may_begin, s);
      begin_lane(m, s);
    }
  }
}

/* Lets the stream do what it can at this time. */
static void begin_lane(const machine *m, int32_t stream) {
  sim_state *s = m->state;
  sim_lane *l = &s->lanes[stream];
  while (l->running < 0) {
    int32_t index = head(m, stream);
    if (index < 0) return;
    const sim_step *step = &of_lane(m, l)->steps[index];
    if (step->kind == SIM_WAIT) {
      if (s->recorded[step->event] < l->stage - step->lag) return;
    } else if (step->kind == SIM_RECORD) {
      s->recorded[step->event] = l->stage;
      wake_streams(m, &m->program->waits_events, step->event);
    } else {
      if (sim_is_copy(step) && s->activity.copiers[m->program->streams[stream].on].copies) return;
      begin(m, stream, index, step);
      return;
    }
    l->ended = index;
  }
}

/* The step that is next on a stream, -1 while that has not been launched. A stream that has done all steps of its stage
 * goes on to the next stage here. */
static int32_t head(const machine *m, int32_t stream) {
  const sim_stream *of = &m->program->streams[stream];
  const sim_dispatcher *d = &m->state->dispatchers[of->dispatcher];
  sim_lane *l = &m->state->lanes[stream];
  for (;;) {
    const sim_section *section = of_lane(m, l);
    int32_t step = l->ended < 0 ? section->first[stream] : section->next[l->ended];
    if (step < section->n) return l->stage < d->stage || d->done || step < next_launch(m, of->dispatcher) ? step : -1;
    if (l->stage >= d->stage) return -1;
    if ((is_captured(m, l->stage) || is_captured(m, l->stage + 1)) && m->state->n_closed <= l->stage) return -1;
    l->stage++;
    l->section = section_at(m, l->stage);
    l->ended = -1;
  }
}

/* Begins a kernel or a copy. Its rate is set later, together with those of all others that run. */
static void begin(const machine *m, int32_t stream, int32_t index, const sim_step *step) {
  sim_state *s = m->state;
  sim_lane *l = &s->lanes[stream];
  int32_t on = m->program->streams[stream].on;
  int64_t unit = sim_is_copy(step) ? sim_full_copy_rate() : sim_full_kernel_rate(m->program);
  if (sim_is_copy(step)) {
    sim_turn(m->program, &s->activity, on, true);
  } else {
    sim_occupy(m->program, &s->activity, stream, &(sim_kernel){.time_ns = step->time_ns, .busy_ppm = step->busy_ppm});
    s->stages[l->stage].misses += step->op && s->awaited_until[on] == s->now;
  }
  if (s->stages[l->stage].start < 0) s->stages[l->stage].start = s->now;
  l->running = index;
  pl_number_set_add(&s->running, stream);
  l->start = l->since = s->now;
  l->work = step->time_ns * unit;
  l->rate = 0;
  l->beside = l->crowded = false;
  l->beside_ns = 0;
  s->changed = true;
}

static void end_lanes(const machine *m) {
  const pl_number_set *running = &m->state->running;
  int64_t now = m->state->now;
  for (int32_t s = first_of(running); s >= 0; s = next_of(running, s))
    if (m->state->lanes[s].end == now) end_lane(m, s);
}

/* Ends the kernel or copy that runs on a stream. Who waits for it is woken: the stream itself, others that want the
 * copy's engine, or the kernel's dispatcher. */
static void end_lane(const machine *m, int32_t stream) {
  sim_state *s = m->state;
  const sim_stream *of = &m->program->streams[stream];
  sim_lane *l = &s->lanes[stream];
  sim_stage *p = &s->stages[l->stage];
  const sim_step *step = &of_lane(m, l)->steps[l->running];
  p->n_ended++;
  p->end = s->now;
  if (sim_is_copy(step)) {
    sim_turn(m->program, &s->activity, of->on, false);
    wake_streams(m, &m->program->of_engines, of->on);
    int64_t *copy_ns = &p->copy_ns[step->route];
    *copy_ns = pl_add_saturate(*copy_ns, s->now - l->start);
  } else {
    if (l->beside) l->beside_ns += s->now - l->since;
    sim_occupy(m->program, &s->activity, stream, NULL);
    s->dispatchers[of->dispatcher].in_flight--;
    wake_dispatcher(m, of->dispatcher);
    p->lost_ns = pl_add_saturate(p->lost_ns, lost_ns(m, l, step));
  }
  if (m->observer && m->observer->ended) m->observer->ended(m->observer->user, l->stage, l->running, l->start, s->now);
  l->ended = l->running;
  l->running = -1;
  pl_number_set_remove(&s->running, stream);
  pl_number_set_add(&s->may_begin, stream);
  s->changed = true;
}

/* What a kernel that ends has lost to copies beside it. Where no other kernels took from its share, that is all that it
 * took longer than alone. */
static int64_t lost_ns(const machine *m, const sim_lane *l, const sim_step *kernel) {
  int64_t slowdown = m->program->device.slowdown_ppm;
  if (!l->crowded) return m->state->now - l->start - kernel->time_ns;
  return pl_muldiv_ceil(l->beside_ns, slowdown, sim_full_kernel_rate(m->program));
}

/* Where nothing runs and nothing is launched, no stream may have steps left. */
static planc_status check_ended(const machine *m) {
  for (int32_t i = 0; i < m->program->n_streams; i++) {
    int32_t step = head(m, i);
    if (step < 0) continue;
    int32_t event = of_lane(m, &m->state->lanes[i])->steps[step].event;
    return planc_error(PLANC_INVALID_PLAN, "stream %d waits for ever for event %d", i, event);
  }
  return NULL;
}

/* --- Stages ------------------------------------------------------------------------------------------------------- */

static void wake_all(const machine *m);

/* Closes the stages that have ended, in order. One without kernels or copies ends with the one before. */
static void close_stages(const machine *m) {
  sim_state *s = m->state;
  for (; s->n_closed < s->n_entered; s->n_closed++) {
    sim_stage *p = &s->stages[s->n_closed];
    if (p->n_ended < m->program->sections[section_at(m, s->n_closed)].n_timed) return;
    if (s->n_closed > 0 && p->end < p[-1].end) p->end = p[-1].end;
    memcpy(p->stall_ns, s->stall_ns, sizeof p->stall_ns);
    wake_all(m);
  }
}

/* Wakes who may have waited for the end of a stage: dispatchers, to enter another one; and where bodies are captured,
 * streams, none of which begins a body before the stage before it has ended. */
static void wake_all(const machine *m) {
  for (int32_t k = 0; k < m->program->n_dispatchers; k++) pl_number_set_add(&m->state->may_launch, k);
  for (int32_t s = 0; m->program->captured && s < m->program->n_streams; s++)
    pl_number_set_add(&m->state->may_begin, s);
}

/* --- Rates -------------------------------------------------------------------------------------------------------- */

/* Where a rate changes, what has been done so far is taken from the work, and the rest ends at another time. */
static planc_status set_rates(const machine *m) {
  int64_t now = m->state->now;
  const sim_activity *activity = &m->state->activity;
  const pl_number_set *running = &m->state->running;
  for (int32_t i = first_of(running); i >= 0; i = next_of(running, i)) {
    sim_lane *l = &m->state->lanes[i];
    const sim_stream *of = &m->program->streams[i];
    const sim_gpu *g = of->computes ? &activity->gpus[of->on] : NULL;
    bool beside = g && g->n_copying > 0;
    int64_t rate = g ? sim_kernel_rate(m->program, activity, i) : sim_copy_rate(m->program, activity, of->on);
    l->crowded |= g && g->busy_ppm > PL_PPM;
    if (rate == l->rate && beside == l->beside) continue;
    l->work -= l->rate * (now - l->since);
    if (l->beside) l->beside_ns += now - l->since;
    l->beside = beside;
    l->rate = rate;
    l->since = now;
    if (pl_add_overflow(now, l->work / rate + (l->work % rate > 0), &l->end)) return too_long();
  }
  m->state->changed = false;
  return NULL;
}

/* Whether anything will end, and when the first of it does. */
static bool find_next_end(const machine *m, int64_t *out) {
  const pl_number_set *launching = &m->state->launching, *running = &m->state->running;
  *out = INT64_MAX;
  for (int32_t k = first_of(launching); k >= 0; k = next_of(launching, k)) {
    int64_t free_at = m->state->dispatchers[m->program->dispatchers[k]].free_at;
    if (free_at < *out) *out = free_at;
  }
  for (int32_t s = first_of(running); s >= 0; s = next_of(running, s))
    if (m->state->lanes[s].end < *out) *out = m->state->lanes[s].end;
  return first_of(launching) >= 0 || first_of(running) >= 0;
}

/* --- Stalls ------------------------------------------------------------------------------------------------------- */

static void count_stall(const machine *m, int32_t g, int64_t until);
static const sim_step *awaited_copy(const machine *m, int32_t stream);

static void count_stalls(const machine *m, int64_t until) {
  for (int32_t g = 0; g < m->program->n_gpus; g++)
    if (m->state->activity.gpus[g].n_computing == 0) count_stall(m, g, until);
}

/* Nothing computes on a GPU until `until`. Its first compute stream that has a step to do says why; where none has, all
 * wait for dispatchers. */
static void count_stall(const machine *m, int32_t g, int64_t until) {
  const sim_streams *of = &m->program->of_gpus;
  int32_t k = of->first[g];
  while (k < of->first[g + 1] && head(m, of->streams[k]) < 0) k++;
  const sim_step *copy = k < of->first[g + 1] ? awaited_copy(m, of->streams[k]) : NULL;
  planc_stall why = copy ? (planc_stall)copy->route : PLANC_STALL_LAUNCH;
  m->state->stall_ns[why] = pl_add_saturate(m->state->stall_ns[why], until - m->state->now);
  if (copy && copy->to_gpu) m->state->awaited_until[g] = until;
}

/* The copy that an idle stream waits for in the end, NULL where it is a launch. A stream that waits for an event waits
 * for what the stream does that will record it, which may wait itself. */
static const sim_step *awaited_copy(const machine *m, int32_t stream) {
  for (int32_t depth = 0; depth <= m->program->n_streams; depth++) {
    const sim_lane *l = &m->state->lanes[stream];
    int32_t index = l->running >= 0 ? l->running : head(m, stream);
    if (index < 0) return NULL;
    const sim_step *step = &of_lane(m, l)->steps[index];
    if (sim_is_copy(step)) return step;
    if (step->kind != SIM_WAIT || m->program->recorder[step->event] < 0) return NULL;
    stream = m->program->recorder[step->event];
  }
  return NULL;
}

/* --- What several sections need ----------------------------------------------------------------------------------- */

/* Members of a set, from the least up. */
static int32_t first_of(const pl_number_set *set) {
  return pl_number_set_above(set, 0);
}

static int32_t next_of(const pl_number_set *set, int32_t member) {
  return pl_number_set_above(set, member + 1);
}

static int32_t section_at(const machine *m, int32_t stage) {
  return stage == 0 ? SIM_PROLOGUE : stage == m->state->epilogue_stage ? SIM_EPILOGUE : SIM_BODY;
}

static const sim_section *of_dispatcher(const machine *m, const sim_dispatcher *d) {
  return &m->program->sections[d->section];
}

static const sim_section *of_lane(const machine *m, const sim_lane *l) {
  return &m->program->sections[l->section];
}

static bool is_captured(const machine *m, int32_t stage) {
  return m->program->captured && stage > 0 && stage != m->state->epilogue_stage;
}

/* The dispatcher's next kernel or copy in its stage, n of the section if there is none. */
static int32_t next_launch(const machine *m, int32_t dispatcher) {
  const sim_dispatcher *d = &m->state->dispatchers[dispatcher];
  const sim_section *section = of_dispatcher(m, d);
  return d->launched < 0 ? section->first_launch[dispatcher] : section->next_launch[d->launched];
}

/* Wakes a dispatcher, which then launches what it can. */
static void wake_dispatcher(const machine *m, int32_t dispatcher) {
  pl_number_set_add(&m->state->may_launch, m->program->place_of[dispatcher]);
}

/* Wakes the streams that are listed for `key`, each of which then begins what it can. */
static void wake_streams(const machine *m, const sim_streams *listed, int32_t key) {
  for (int32_t k = listed->first[key]; k < listed->first[key + 1]; k++)
    pl_number_set_add(&m->state->may_begin, listed->streams[k]);
}

static planc_status too_long(void) {
  return planc_error(PLANC_BAD_INPUT, "it takes too long to simulate");
}
