/* Times of ops (measure.h). */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/profile/iterations.h"
#include "runtime/stop.h"
#include "util/math.h"

typedef struct candidates {
  int32_t count;
  rt_variant *variants;
  bool *refused;    /* by variant: it cannot be run, or is left out */
  bool *corrected;  /* by variant: its workspace is what the device has said, not what was listed */
  int64_t *took_ns; /* by variant; -1: not measured by this process */
  int32_t runs;     /* the one that is prepared */
} candidates;

typedef struct op_bench {
  const rt_op_options *options;
  rt_iterations iterations;
  pl_arena memory;
  candidates *ops;         /* by instance */
  int64_t workspace_bytes; /* the largest of all */
  int32_t n_passes;
  rt_choice *choices;
  int32_t pass; /* that runs */
  bool again;   /* passes are prepared that have been measured: nobody is told */
  bool stopped; /* while it was prepared */
} op_bench;

static planc_status run_passes(op_bench *b);
static planc_status run_pass(op_bench *b, int32_t pass);
static void tear_down(op_bench *b);
static planc_status set_up(op_bench *b);
static bool is_careful(const op_bench *b);
static planc_status tell_trial(void *user, int32_t instance);
static planc_status run_on(op_bench *b, rt_resident *resident, int32_t pass, rt_op_times *out);
static planc_status prepare_pass(op_bench *b, int32_t pass, rt_resident **out);

planc_status rt_measure_ops(const rt_op_options *options) {
  op_bench b = {.options = options};
  planc_status status = set_up(&b);
  if (!status) status = run_passes(&b);
  tear_down(&b);
  return planc_context(status, "batch %lld", (long long)options->batch);
}

static planc_status run_passes(op_bench *b) {
  planc_status status = NULL;
  for (int32_t pass = b->options->first_pass; !status && pass < b->n_passes && !rt_is_stopped(b->options->stop); pass++)
    status = run_pass(b, pass);
  return status;
}

static planc_status run_pass(op_bench *b, int32_t pass) {
  const rt_op_options *options = b->options;
  rt_op_times times = {0};
  rt_resident *resident;
  if (options->progress) options->progress(options->user, pass, b->n_passes);
  PLANC_TRY(prepare_pass(b, pass, &resident));
  if (!resident) return NULL;
  b->iterations.before = options->trying ? tell_trial : NULL;
  b->iterations.user = b;
  b->iterations.apart = is_careful(b);
  planc_status status = tell_trial(b, -1);
  if (!status) status = run_on(b, resident, pass, &times);
  rt_resident_free(resident);
  VEC_FREE(&times);
  return status;
}

static void tear_down(op_bench *b) {
  rt_iterations_close(&b->iterations);
  pl_arena_free(&b->memory);
}

/* --- What there is to measure ------------------------------------------------------------------------------------- */

static planc_status find_candidates(op_bench *b);
static planc_status find_on(op_bench *b, rt_device *device, rt_variant *found);
static planc_status keep_candidates(op_bench *b, const rt_variant *found, int32_t count, candidates *out);
static void leave_out(const op_bench *b, const char *op, candidates *of);

static const planc_trace *trace_of(const op_bench *b) {
  return b->iterations.session.trace;
}

static planc_status set_up(op_bench *b) {
  PLANC_TRY(rt_iterations_open(b->options, &b->iterations));
  PLANC_TRY(find_candidates(b));
  return PL_NEW(&b->memory, &b->choices, trace_of(b)->n_instances);
}

static planc_status find_candidates(op_bench *b) {
  rt_device *device;
  rt_variant *found = calloc(RT_MAX_VARIANTS, sizeof *found);
  if (!found) return planc_error(PLANC_OUT_OF_MEMORY, "variants");
  planc_status status = rt_list_open(b->options->backend, b->options->deterministic, &device);
  if (!status) {
    status = find_on(b, device, found);
    b->options->backend->close(device);
  }
  free(found);
  return status;
}

static planc_status find_on(op_bench *b, rt_device *device, rt_variant *found) {
  const planc_trace *trace = trace_of(b);
  void **nowhere;
  PLANC_TRY(PL_NEW(&b->memory, &nowhere, rt_most_accesses(trace)));
  PLANC_TRY(PL_NEW(&b->memory, &b->ops, trace->n_instances));
  for (int32_t i = 0; i < trace->n_instances; i++) {
    rt_call call;
    int32_t count;
    PLANC_TRY(rt_call_make(&b->memory, trace, 0, i, nowhere, &call));
    PLANC_TRY(planc_context(b->options->backend->variants(device, &call, found, &count), "op %s", call.op->name));
    PLANC_TRY(keep_candidates(b, found, rt_shortlist(found, count, b->options->most), &b->ops[i]));
    leave_out(b, call.op->name, &b->ops[i]);
  }
  return NULL;
}

static planc_status keep_candidates(op_bench *b, const rt_variant *found, int32_t count, candidates *out) {
  out->count = count;
  PLANC_TRY(PL_NEW(&b->memory, &out->variants, count));
  PLANC_TRY(PL_NEW(&b->memory, &out->refused, count));
  PLANC_TRY(PL_NEW(&b->memory, &out->corrected, count));
  PLANC_TRY(PL_NEW(&b->memory, &out->took_ns, count));
  memcpy(out->variants, found, (size_t)count * sizeof *found);
  for (int32_t v = 0; v < count; v++) {
    out->took_ns[v] = -1;
    if (found[v].workspace_bytes > b->workspace_bytes) b->workspace_bytes = found[v].workspace_bytes;
  }
  if (count > b->n_passes) b->n_passes = count;
  return NULL;
}

/* Not where that would leave nothing. */
static void leave_out(const op_bench *b, const char *op, candidates *of) {
  const rt_op_options *options = b->options;
  int32_t n = 0;
  for (int32_t v = 0; options->left_out && v < of->count; v++) {
    of->refused[v] = options->left_out(options->user, op, of->variants[v].algorithm);
    n += of->refused[v];
  }
  if (n == of->count) memset(of->refused, 0, (size_t)n * sizeof *of->refused);
  for (int32_t v = 0; options->refused && !b->again && v < of->count; v++)
    if (of->refused[v]) options->refused(options->user, op, of->variants[v].algorithm, NULL);
}

/* --- Telling ------------------------------------------------------------------------------------------------------ */

static bool is_careful(const op_bench *b) {
  return b->options->careful && b->pass == b->options->first_pass;
}

static bool is_only(const candidates *of) {
  int32_t left = 0;
  for (int32_t v = 0; v < of->count; v++) left += !of->refused[v];
  return left <= 1;
}

/* An algorithm of a pass before has been survived. */
static planc_status tell_trial(void *user, int32_t instance) {
  const op_bench *b = user;
  const rt_op_options *options = b->options;
  rt_trial trial = {.pass = b->pass};
  if (!options->trying || b->again) return NULL;
  if (instance >= 0 && (is_careful(b) || b->ops[instance].runs >= b->pass)) {
    const candidates *of = &b->ops[instance];
    trial.op = planc_trace_op(trace_of(b), instance)->name;
    trial.algorithm = of->variants[of->runs].algorithm;
    trial.only = is_only(of);
  }
  return options->trying(options->user, &trial);
}

/* Preparing all ops takes a while: who stops does not wait for the end of it. */
static planc_status before_preparing(void *user, int32_t instance, const char *algorithm) {
  op_bench *b = user;
  candidates *of = &b->ops[instance];
  b->stopped = rt_is_stopped(b->options->stop);
  if (b->stopped) return planc_error(PLANC_INTERNAL, "stopped");
  of->runs = 0;
  while (of->variants[of->runs].algorithm != algorithm) of->runs++;
  return tell_trial(b, instance);
}

/* --- Passes ------------------------------------------------------------------------------------------------------- */

static planc_status count_taken(const op_bench *b, const rt_resident *resident);
static int compare_ops(const void *a, const void *b);
static bool choose(const candidates *from, int32_t wanted, rt_choice *out);
static int32_t fastest(const candidates *of);
static bool run_instead(void *user, int32_t instance, planc_status why, int64_t need_bytes, rt_choice *choice);
static bool correct_workspace(const op_bench *b, candidates *of, int32_t variant, int64_t need_bytes);
static planc_status count_code(void *user, const char *algorithm, int64_t bytes);
static bool is_parallel(const op_bench *b);
static planc_status keep_times(op_bench *b, rt_resident *resident, int32_t pass, rt_op_times *out);

static planc_status run_on(op_bench *b, rt_resident *resident, int32_t pass, rt_op_times *out) {
  const rt_op_options *options = b->options;
  bool whole;
  PLANC_TRY(count_taken(b, resident));
  PLANC_TRY(rt_iterations_load(&b->iterations, resident));
  PLANC_TRY(rt_iterations_time(&b->iterations, resident, &whole));
  if (!whole) return NULL;
  PLANC_TRY(keep_times(b, resident, pass, out));
  if (out->len > 0) qsort(out->data, (size_t)out->len, sizeof *out->data, compare_ops);
  rt_pass measured = {.number = pass, .of = b->n_passes, .times = out};
  return options->passed(options->user, &measured);
}

static planc_status count_taken(const op_bench *b, const rt_resident *resident) {
  rt_memory_taken *taken = b->options->taken;
  int64_t now = 0;
  if (!taken) return NULL;
  PLANC_TRY(rt_resident_taken(resident, &now));
  if (now - taken->loaded_bytes > taken->beside_bytes) taken->beside_bytes = now - taken->loaded_bytes;
  return NULL;
}

static int compare_ops(const void *a, const void *b) {
  return ((const rt_op_time *)a)->op - ((const rt_op_time *)b)->op;
}

/* Prepares pass `pass`, in which every op that has so many has its algorithm of that number. NULL in *out where that
 * was stopped. */
static planc_status prepare_pass(op_bench *b, int32_t pass, rt_resident **out) {
  const rt_op_options *options = b->options;
  const planc_trace *trace = trace_of(b);
  *out = NULL;
  b->pass = pass;
  for (int32_t i = 0; i < trace->n_instances; i++) choose(&b->ops[i], pass, &b->choices[i]);
  rt_resident_options how = {.backend = options->backend,
                             .trace = trace,
                             .choices = b->choices,
                             .deterministic = options->deterministic,
                             .timed = true,
                             .workspace_bytes = b->workspace_bytes,
                             .instead = run_instead,
                             .preparing = before_preparing,
                             .loaded = options->taken ? count_code : NULL,
                             .user = b};
  if (is_parallel(b)) how.streams = RT_MAX_TOGETHER;
  planc_status status = rt_resident_new(&how, out);
  if (!b->stopped) return status;
  planc_status_free(status);
  return NULL;
}

/* Chooses variant `wanted`. Where it does not run, or there are not so many, the pass has nothing to measure of the op,
 * which then is to take little time: the fastest known; where none is, the last or the first that runs. False: none
 * does. */
static bool choose(const candidates *from, int32_t wanted, rt_choice *out) {
  int32_t last = from->count - 1, v = wanted;
  if (v > last || from->refused[v]) v = fastest(from);
  if (v < 0) v = wanted < last ? wanted : last;
  if (from->refused[v]) v = 0;
  while (v < from->count && from->refused[v]) v++;
  if (v == from->count) return false;
  *out = (rt_choice){from->variants[v].algorithm, from->variants[v].workspace_bytes};
  return true;
}

/* -1: none has been measured. */
static int32_t fastest(const candidates *of) {
  int32_t best = -1;
  for (int32_t v = 0; v < of->count; v++)
    if (of->took_ns[v] >= 0 && !of->refused[v] && (best < 0 || of->took_ns[v] < of->took_ns[best])) best = v;
  return best;
}

/* What a library lists may still fail when it is run: that is no reason to know nothing of all the others. */
static bool run_instead(void *user, int32_t instance, planc_status why, int64_t need_bytes, rt_choice *choice) {
  op_bench *b = user;
  candidates *from = &b->ops[instance];
  int32_t v = 0;
  while (from->variants[v].algorithm != choice->algorithm) v++;
  if (correct_workspace(b, from, v, need_bytes)) return choose(from, v, choice);
  from->refused[v] = true;
  const char *op = planc_trace_op(trace_of(b), instance)->name;
  if (b->options->refused && !b->again) b->options->refused(b->options->user, op, choice->algorithm, why);
  return choose(from, v, choice);
}

/* A device that is only described may list less than the real one needs, which then says how much, within the room that
 * all share. Once for each variant: a device whose answers grew would have no end. */
static bool correct_workspace(const op_bench *b, candidates *of, int32_t variant, int64_t need_bytes) {
  rt_variant *v = &of->variants[variant];
  if (of->corrected[variant] || need_bytes <= v->workspace_bytes || need_bytes > b->workspace_bytes) return false;
  of->corrected[variant] = true;
  v->workspace_bytes = need_bytes;
  return true;
}

/* What an algorithm's calls make the device take in all. */
static planc_status count_code(void *user, const char *algorithm, int64_t bytes) {
  rt_memory_taken *taken = ((const op_bench *)user)->options->taken;
  taken->loaded_bytes += bytes;
  if (((const op_bench *)user)->again) return NULL;
  for (int64_t c = 0; c < taken->code.len; c++) {
    if (strcmp(taken->code.data[c].algorithm, algorithm) != 0) continue;
    taken->code.data[c].bytes += bytes;
    return NULL;
  }
  rt_code_size size = {.bytes = bytes};
  snprintf(size.algorithm, sizeof size.algorithm, "%s", algorithm);
  VEC_PUSH(&taken->code, size);
  return NULL;
}

static planc_status prepare_passes(op_bench *b) {
  int32_t n = b->options->first_pass;
  planc_status status = NULL;
  if (n < 0) n = b->n_passes;
  for (int32_t pass = 0; !status && pass < n && !rt_is_stopped(b->options->stop); pass++) {
    rt_resident *resident;
    if (b->options->progress) b->options->progress(b->options->user, pass, n);
    status = prepare_pass(b, pass, &resident);
    if (!status) rt_resident_free(resident);
  }
  return status;
}

planc_status rt_prepare_again(const rt_op_options *options) {
  op_bench b = {.options = options, .again = true};
  planc_status status = set_up(&b);
  if (!status) status = prepare_passes(&b);
  tear_down(&b);
  return planc_context(status, "batch %lld", (long long)options->batch);
}

/* --- Busy share --------------------------------------------------------------------------------------------------- */

/* An op keeps a device of many processors busy by the share s when k of it at once take k s times as long as one. Asked
 * of k = 2, 4, 8 until it shows; an op that takes long fills the device. */
static planc_status measure_busy(rt_resident *resident, int32_t instance, int64_t alone_ns, int64_t *out_ppm) {
  enum { LONG_NS = 500000, ENOUGH_NS = 200000, MAX_TIMES = 16 };
  *out_ppm = PL_PPM;
  if (alone_ns >= LONG_NS) return NULL;
  int32_t times = alone_ns > ENOUGH_NS / MAX_TIMES ? (int32_t)(ENOUGH_NS / alone_ns) + 1 : MAX_TIMES;
  int64_t one;
  PLANC_TRY(rt_resident_together(resident, instance, 1, times, &one));
  for (int32_t k = 2; k <= RT_MAX_TOGETHER && one > 0; k *= 2) {
    int64_t many;
    PLANC_TRY(rt_resident_together(resident, instance, k, times, &many));
    int64_t ppm = (int64_t)(1e6 * (double)many / ((double)k * (double)one));
    *out_ppm = pl_clamp(ppm, 1, PL_PPM);
    if (many > one + one / 10) return NULL;
  }
  return NULL;
}

static bool is_parallel(const op_bench *b) {
  return b->options->backend->beside;
}

/* 0: not known. */
static planc_status busy_by_rule(const planrt_backend *backend, int64_t *out_ppm) {
  rt_device_info info;
  *out_ppm = 0;
  if (!backend->takes_one) return NULL;
  PLANC_TRY(backend->info(&info));
  *out_ppm = PL_PPM / (info.processors > 0 ? info.processors : 1);
  return NULL;
}

/* What a pass has measured, and beside it, on a device where ops run beside each other, what they leave each other. */
static planc_status keep_times(op_bench *b, rt_resident *resident, int32_t pass, rt_op_times *out) {
  const planc_trace *trace = trace_of(b);
  int64_t busy_ppm;
  PLANC_TRY(busy_by_rule(b->options->backend, &busy_ppm));
  for (int32_t i = 0; i < trace->n_instances; i++) {
    if (pass >= b->ops[i].count || b->ops[i].refused[pass]) continue;
    rt_op_time time = {.op = trace->instances[i].op,
                       .variant = b->ops[i].variants[pass],
                       .time = rt_iterations_statistic(&b->iterations, i),
                       .busy_ppm = busy_ppm};
    if (is_parallel(b)) {
      PLANC_TRY(tell_trial(b, i));
      PLANC_TRY(measure_busy(resident, i, time.time.median_ns, &time.busy_ppm));
    }
    b->ops[i].took_ns[pass] = time.time.median_ns;
    VEC_PUSH(out, time);
  }
  return NULL;
}
