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
  PLANC_TRY(PL_NEW(&session->memory, &out->slow, session->trace->n_instances));
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
static planc_status enqueue(const rt_iterations *it, rt_resident *resident, bool slow_too, rt_span *spans);
static bool stopped(const rt_iterations *it);
static void keep_times(rt_iterations *it);
static int32_t n_samples(const rt_iterations *it, int32_t instance);

planc_status rt_iterations_time(rt_iterations *it, rt_resident *resident, bool *out_whole) {
  int32_t n = it->session.trace->n_instances, repetitions = it->options->repetitions, r;
  *out_whole = false;
  PLANC_TRY(run_first(it, resident));
  PLANC_TRY(warm_up(it, resident));
  PLANC_TRY(enqueue(it, resident, false, NULL));
  for (r = 0; r < repetitions && !stopped(it); r++)
    PLANC_TRY(enqueue(it, resident, r == repetitions - 1, &it->spans[(int64_t)r * n]));
  PLANC_TRY(rt_resident_synchronize(resident));
  *out_whole = r == repetitions && !stopped(it);
  if (*out_whole) keep_times(it);
  return NULL;
}

/* In lots, awaited one by one so that no queue runs ahead of the clock by more, and so large that the device hardly
 * rests between two. */
static planc_status warm_up(const rt_iterations *it, rt_resident *resident) {
  enum { LONG_NS = 20000000 };
  int64_t begin = pl_now_ns(), lot = 1, last = begin;
  int32_t n = it->session.trace->n_instances, fast = 0;
  while (fast < n && it->slow[fast]) fast++;
  if (fast == n) return NULL;
  while (last - begin < it->options->warm_ns && !stopped(it)) {
    for (int64_t i = 0; i < lot && !stopped(it); i++) PLANC_TRY(enqueue(it, resident, false, NULL));
    PLANC_TRY(rt_resident_synchronize(resident));
    int64_t now = pl_now_ns();
    if (now - last < LONG_NS) lot *= 2;
    last = now;
  }
  return NULL;
}

static void keep_times(rt_iterations *it) {
  int32_t n = it->session.trace->n_instances, repetitions = it->options->repetitions;
  for (int32_t i = 0; i < n; i++)
    for (int32_t r = repetitions - n_samples(it, i); r < repetitions; r++) {
      const rt_span *span = &it->spans[(int64_t)r * n + i];
      it->times[(int64_t)i * repetitions + r] = span->end_ns - span->start_ns;
    }
}

rt_statistic rt_iterations_statistic(const rt_iterations *it, int32_t instance) {
  int32_t repetitions = it->options->repetitions, n = n_samples(it, instance);
  return rt_statistic_of(&it->times[(int64_t)instance * repetitions + repetitions - n], n);
}

/* The last of an instance's repetitions. */
static int32_t n_samples(const rt_iterations *it, int32_t instance) {
  return it->slow[instance] ? 1 : it->options->repetitions;
}

static bool stopped(const rt_iterations *it) {
  return rt_is_stopped(it->options->stop);
}

static planc_status run_apart(const rt_iterations *it, rt_resident *resident, bool slow_too, rt_span *spans) {
  rt_launch launch = {.step = {.learning_rate = 0.0}, .measured = true};
  for (int32_t i = 0; i < it->session.trace->n_instances; i++) {
    if (it->slow[i] && !slow_too) continue;
    PLANC_TRY(it->before(it->user, i));
    PLANC_TRY(rt_resident_run_one(resident, i, &launch, spans));
  }
  return NULL;
}

static planc_status enqueue(const rt_iterations *it, rt_resident *resident, bool slow_too, rt_span *spans) {
  rt_launch launch = {.step = {.learning_rate = 0.0}, .measured = true};
  int32_t n = it->session.trace->n_instances;
  if (it->apart) return run_apart(it, resident, slow_too, spans);
  for (int32_t first = 0, end; first < n; first = end + 1) {
    end = first;
    while (end < n && (slow_too || !it->slow[end])) end++;
    PLANC_TRY(rt_resident_enqueue(resident, first, end - first, &launch, spans, NULL));
  }
  return NULL;
}

/* Some algorithms take a thousand times as long as others: a few of them would take all the time that there is. */
static planc_status run_first(const rt_iterations *it, rt_resident *resident) {
  int64_t slow_ns = it->options->slow_ns;
  if (!it->before) return NULL;
  PLANC_TRY(run_apart(it, resident, true, it->spans));
  for (int32_t i = 0; i < it->session.trace->n_instances; i++)
    it->slow[i] = slow_ns > 0 && it->spans[i].end_ns - it->spans[i].start_ns >= slow_ns;
  return it->before(it->user, -1);
}
