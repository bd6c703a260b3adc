/* Iterations back to back (iterations.h). A device that rests lowers its clocks, and takes a while to raise them: what
 * is measured must come right behind work like itself. */
#include "runtime/profile/iterations.h"

#include "runtime/stop.h"
#include "util/clock.h"

static planc_status expand(rt_iterations *it) {
  const rt_op_options *options = it->options;
  planc_job job = {
      .graph = options->graph, .batch = options->batch, .n_rounds = 1, .rounds = &options->batch, .iterations = 1};
  return planc_expand(&job, 1, &it->session.trace);
}

planc_status rt_iterations_open(const rt_op_options *options, rt_iterations *out) {
  *out = (rt_iterations){.options = options};
  planrt_session *session = &out->session;
  session->backend = options->backend;
  session->options.same_samples = true;
  session->feed = rt_random_feed;
  session->feed_user = session;
  PLANC_TRY(expand(out));
  PLANC_TRY(rt_jobs_open(session));
  PLANC_TRY(rt_user_open(session));
  PLANC_TRY(planrt_init(session));
  int64_t count = (int64_t)session->trace->n_instances * options->repetitions;
  PLANC_TRY(PL_NEW(&session->memory, &out->spans, count));
  return PL_NEW(&session->memory, &out->times, count);
}

void rt_iterations_close(rt_iterations *it) {
  rt_user_close(&it->session);
  planc_trace_free(it->session.trace);
  pl_arena_free(&it->session.memory);
}

planc_status rt_iterations_load(const rt_iterations *it, rt_resident *resident) {
  PLANC_TRY(rt_resident_load(resident, &it->session));
  return rt_resident_bring(resident, &it->session);
}

static planc_status run_first(const rt_iterations *it, rt_resident *resident);
static planc_status warm_up(const rt_iterations *it, rt_resident *resident);
static planc_status enqueue(const rt_iterations *it, rt_resident *resident, rt_span *spans);
static bool stopped(const rt_iterations *it);

planc_status rt_iterations_time(rt_iterations *it, rt_resident *resident, bool *out_whole) {
  int32_t n = it->session.trace->n_instances, repetitions = it->options->repetitions, r;
  *out_whole = false;
  PLANC_TRY(run_first(it, resident));
  PLANC_TRY(warm_up(it, resident));
  PLANC_TRY(enqueue(it, resident, NULL));
  for (r = 0; r < repetitions && !stopped(it); r++) PLANC_TRY(enqueue(it, resident, &it->spans[(int64_t)r * n]));
  PLANC_TRY(rt_resident_synchronize(resident));
  *out_whole = r == repetitions && !stopped(it);
  for (int32_t i = 0; *out_whole && i < n; i++)
    for (r = 0; r < repetitions; r++) {
      const rt_span *span = &it->spans[(int64_t)r * n + i];
      it->times[(int64_t)i * repetitions + r] = span->end_ns - span->start_ns;
    }
  return NULL;
}

/* In lots, awaited one by one so that no queue runs ahead of the clock by more, and so large that the device hardly
 * rests between two. */
static planc_status warm_up(const rt_iterations *it, rt_resident *resident) {
  enum { LONG_NS = 20000000 };
  int64_t begin = pl_now_ns(), lot = 1, last = begin;
  while (last - begin < it->options->warm_ns && !stopped(it)) {
    for (int64_t i = 0; i < lot && !stopped(it); i++) PLANC_TRY(enqueue(it, resident, NULL));
    PLANC_TRY(rt_resident_synchronize(resident));
    int64_t now = pl_now_ns();
    if (now - last < LONG_NS) lot *= 2;
    last = now;
  }
  return NULL;
}

rt_statistic rt_iterations_statistic(const rt_iterations *it, int32_t instance) {
  int32_t repetitions = it->options->repetitions;
  return rt_statistic_of(&it->times[(int64_t)instance * repetitions], repetitions);
}

static bool stopped(const rt_iterations *it) {
  return rt_is_stopped(it->options->stop);
}

static planc_status run_apart(const rt_iterations *it, rt_resident *resident, rt_span *spans) {
  rt_launch launch = {.step = {.learning_rate = 0.0}, .measured = true};
  for (int32_t i = 0; i < it->session.trace->n_instances; i++) {
    PLANC_TRY(it->before(it->user, i));
    PLANC_TRY(rt_resident_run_one(resident, i, &launch, spans));
  }
  return NULL;
}

static planc_status enqueue(const rt_iterations *it, rt_resident *resident, rt_span *spans) {
  rt_launch launch = {.step = {.learning_rate = 0.0}, .measured = true};
  if (it->apart) return run_apart(it, resident, spans);
  return rt_resident_enqueue(resident, 0, it->session.trace->n_instances, &launch, spans, NULL);
}

static planc_status run_first(const rt_iterations *it, rt_resident *resident) {
  if (!it->before) return NULL;
  PLANC_TRY(run_apart(it, resident, NULL));
  return it->before(it->user, -1);
}
