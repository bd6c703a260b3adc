/* `planrun profile`: measures what the pieces that are kept lack (cmd_profile.h), and before each trial of an algorithm
 * leaves word of it, for the case that the process does not survive that. */
#include <stdio.h>

#include "program/print.h"
#include "program/progress.h"
#include "runtime/cli/cmd_profile.h"
#include "runtime/profile/profile_json.h"
#include "runtime/profile/profile_taken.h"
#include "util/json_tree.h"

enum { MS = 1000000, SLOW_MS = 20 };

typedef struct measuring {
  run_profiling *p;
  int64_t load_ppm, batch; /* that are measured now */
  rt_memory_taken taken;   /* its code is the pass's, its `loaded_bytes` the process's */
  cJSON *refused;          /* algorithms in the pass that runs: an array */
  cJSON *trial;            /* what is tried now, or NULL */
  char doing[64];
} measuring;

static void tell_trials(const cJSON *pieces);
static planc_status measure_all(measuring *m);
static planc_status end_with(const measuring *m, planc_status failure);
static planc_status measure_load(measuring *m, int64_t load_ppm);
static bool lacks(const run_profiling *p, bool (*is_of)(const cJSON *piece));
static planc_status measure_links(const run_profiling *p);
static planc_status measure_storage(const run_profiling *p);
static planc_status load_again(measuring *m, int32_t until);
static planc_status measure_passes(measuring *m, int32_t first);

planc_status run_profiling_measure(run_profiling *p) {
  measuring m = {.p = p, .refused = cJSON_CreateArray()};
  tell_trials(p->kept->pieces);
  planc_status status = measure_all(&m);
  prog_progress_end(stderr);
  status = end_with(&m, status);
  VEC_FREE(&m.taken.code);
  cJSON_Delete(m.refused);
  cJSON_Delete(m.trial);
  return status;
}

static planc_status measure_all(measuring *m) {
  const run_profiling *p = m->p;
  for (int32_t l = 0; l < p->n_loads && !run_profiling_stopped(p); l++) PLANC_TRY(measure_load(m, p->loads[l]));
  if (lacks(p, rt_piece_is_of_links)) PLANC_TRY(measure_links(p));
  return p->storage && lacks(p, rt_piece_is_of_storage) ? measure_storage(p) : NULL;
}

static planc_status measure_load(measuring *m, int64_t load_ppm) {
  const run_profiling *p = m->p;
  bool first = true;
  for (int32_t b = 0; b < p->n_batches && !run_profiling_stopped(p); b++) {
    int32_t next = rt_pieces_next_pass(p->kept->pieces, load_ppm, p->batches[b]);
    if (next < 0) continue;
    if (first && load_ppm == 0) PLANC_TRY(load_again(m, b));
    first = false;
    m->load_ppm = load_ppm;
    m->batch = p->batches[b];
    if (!run_profiling_stopped(p)) PLANC_TRY(measure_passes(m, next));
  }
  return NULL;
}

/* --- Trials ------------------------------------------------------------------------------------------------------- */

/* A pass is on the disk before it begins. Its ops are in the file only, which outlives the process and costs little. */
static planc_status leave_word(void *user, const rt_trial *trial) {
  measuring *m = user;
  bool begins = !m->trial;
  cJSON_Delete(m->trial);
  m->trial = rt_piece_of_trial(m->load_ppm, m->batch, trial);
  return rt_kept_mark(m->p->kept, m->trial, begins);
}

static void end_trial(measuring *m) {
  cJSON_Delete(m->trial);
  m->trial = NULL;
}

/* A failure leaves word only where it is the device's, at an algorithm that is tried or with the device lost. */
static planc_status end_with(const measuring *m, planc_status failure) {
  const run_profiling *p = m->p;
  bool device = planc_status_code(failure) == PLANC_DEVICE && m->trial;
  if (!device || (!rt_trial_has_algorithm(m->trial) && !rt_backend_is_lost(p->backend))) {
    rt_kept_unmark(p->kept);
    return failure;
  }
  pl_json_add_string(m->trial, "reason", planc_status_message(failure));
  planc_status unkept = rt_kept_mark(p->kept, m->trial, true);
  if (!unkept && p->kept->path) {
    bool named = rt_trial_has_algorithm(m->trial);
    prog_print_line(stderr, "planrun: note: failed in pass %lld; the same command goes on %s%s",
                    (long long)rt_get_int(m->trial, "pass") + 1, named ? "without " : "with its ops one by one",
                    named ? rt_get_string(m->trial, "algorithm") : "");
  }
  planc_status_free(unkept);
  return failure;
}

/* What processes before have left. */
static void tell_trials(const cJSON *pieces) {
  const cJSON *piece;
  cJSON_ArrayForEach(piece, pieces) {
    if (!rt_piece_is_trial(piece)) continue;
    const char *op = rt_get_string(piece, "op"), *algorithm = rt_get_string(piece, "algorithm");
    const char *reason = rt_get_string(piece, "reason"), *colon = *reason ? ": " : "";
    if (!*algorithm)
      prog_print_line(
          stderr,
          "planrun: note: a run before came to its end in pass %lld of batch %lld: the ops of that pass run "
          "one by one%s%s",
          (long long)rt_get_int(piece, "pass") + 1, (long long)rt_get_int(piece, "batch"), colon, reason);
    else
      prog_print_line(stderr, "planrun: note: op %s: a run before came to its end at %s, %s%s%s", op, algorithm,
                      rt_trial_has_algorithm(piece) ? "which is left out" : "and there is no other", colon, reason);
  }
}

/* --- Passes ------------------------------------------------------------------------------------------------------- */

static bool is_left_out(void *user, const char *op, const char *algorithm) {
  return rt_pieces_leave_out(((const measuring *)user)->p->kept->pieces, op, algorithm);
}

static void show_pass(void *user, int32_t done, int32_t of) {
  prog_progress(stderr, "%s: pass %d of %d", ((const measuring *)user)->doing, done + 1, of);
}

/* A device's times hardly spread, and an op's that is so long least of all; the host's do. */
static rt_op_options options_of(const run_profiling *p, int64_t batch) {
  return (rt_op_options){.backend = p->backend,
                         .graph = p->graph,
                         .batch = batch,
                         .deterministic = p->deterministic,
                         .repetitions = (int32_t)p->repetitions,
                         .warm_ns = p->warm_up_ms * MS,
                         .slow_ns = p->backend == &rt_host_backend ? 0 : SLOW_MS * MS,
                         .most = (int32_t)p->most,
                         .stop = p->stop};
}

/* Of all that passes need, those that are to be measured from pass `first` on, or have been up to there. */
static rt_op_options passes_of(measuring *m, int32_t first) {
  rt_op_options how = options_of(m->p, m->batch);
  how.first_pass = first;
  how.progress = show_pass;
  how.left_out = is_left_out;
  how.user = m;
  how.taken = m->load_ppm > 0 ? NULL : &m->taken;
  return how;
}

static planc_status keep_pass(void *user, const rt_pass *pass);
static void note_refused(void *user, const char *op, const char *algorithm, planc_status why);
static void add_refusal(measuring *m, const char *op, const char *algorithm, const char *why);

static planc_status measure_passes(measuring *m, int32_t first) {
  const run_profiling *p = m->p;
  rt_background *background;
  rt_op_options how = passes_of(m, first);
  how.passed = keep_pass;
  how.refused = note_refused;
  how.trying = leave_word;
  how.careful = rt_pieces_ended_in(p->kept->pieces, m->load_ppm, m->batch, first);
  snprintf(m->doing, sizeof m->doing, "batch %lld, load %lld %%", (long long)m->batch,
           (long long)(m->load_ppm / PLANC_UNIT_PERCENT));
  m->taken.beside_bytes = 0;
  PLANC_TRY(rt_background_load(p->backend, m->load_ppm, &background));
  planc_status status = rt_measure_ops(&how);
  planc_status stopped = rt_background_stop(background);
  if (status)
    planc_status_free(stopped);
  else
    status = stopped;
  return status;
}

static planc_status keep_pass(void *user, const rt_pass *pass) {
  measuring *m = user;
  const run_profiling *p = m->p;
  cJSON *piece = rt_piece_of_ops(p->graph, m->load_ppm, m->batch, pass->times, m->load_ppm > 0 ? NULL : &m->taken);
  m->taken.code.len = 0;
  rt_piece_of_pass(piece, pass->number, pass->of, m->refused);
  cJSON_Delete(m->refused);
  m->refused = cJSON_CreateArray();
  PLANC_TRY(rt_kept_add(p->kept, piece));
  end_trial(m);
  return NULL;
}

/* What ended a process at the op itself is told of as it is. */
static void note_refused(void *user, const char *op, const char *algorithm, planc_status why) {
  measuring *m = user;
  if (!why) {
    if (!rt_pieces_ended_at(m->p->kept->pieces, op, algorithm))
      add_refusal(m, op, algorithm, "planrun came to its end while other ops ran by it");
    return;
  }
  prog_progress_end(stderr);
  prog_print_line(stderr, "planrun: note: op %s: %s cannot be run and is left out: %s", op, algorithm,
                  planc_status_message(why));
  add_refusal(m, op, algorithm, planc_status_message(why));
}

static void add_refusal(measuring *m, const char *op, const char *algorithm, const char *why) {
  cJSON *refusal = cJSON_CreateObject();
  pl_json_add_string(refusal, "op", op);
  pl_json_add_string(refusal, "algorithm", algorithm);
  pl_json_add_int(refusal, "batch", m->batch);
  pl_json_add_string(refusal, "reason", why);
  pl_json_add(m->refused, NULL, refusal);
}

/* What a sitting before has measured loads its code in this one as well: before anything is measured that might be
 * charged with it. `until`: the first batch that is not whole. */
static planc_status load_again(measuring *m, int32_t until) {
  const run_profiling *p = m->p;
  if (!rt_pieces_have_code(p->kept->pieces)) return NULL;
  m->load_ppm = 0;
  for (int32_t b = 0; b <= until && !run_profiling_stopped(p); b++) {
    m->batch = p->batches[b];
    rt_op_options how = passes_of(m, rt_pieces_next_pass(p->kept->pieces, 0, m->batch));
    snprintf(m->doing, sizeof m->doing, "code of what was measured: batch %lld", (long long)m->batch);
    if (how.first_pass != 0) PLANC_TRY(rt_prepare_again(&how));
  }
  return NULL;
}

/* --- Links and storage -------------------------------------------------------------------------------------------- */

/* What a run of the smallest batch costs beside its ops, each by its fastest algorithm, as plans without want of memory
 * have them. */
static planc_status measure_run(const run_profiling *p, rt_run_costs *out) {
  int64_t smallest = p->batches[0];
  for (int32_t i = 1; i < p->n_batches; i++)
    if (p->batches[i] < smallest) smallest = p->batches[i];
  rt_op_options how = options_of(p, smallest);
  rt_op_times chosen = {0};
  prog_progress(stderr, "launches, and ops beside copies");
  planc_status status = rt_pieces_fastest(p->kept->pieces, p->graph, smallest, &chosen);
  if (!status) status = rt_measure_run(&how, &chosen, p->link_bytes_per_s, out);
  VEC_FREE(&chosen);
  return status;
}

static planc_status measure_links(const run_profiling *p) {
  rt_run_costs run;
  rt_link_times times;
  prog_progress(stderr, "links");
  PLANC_TRY(rt_measure_links(p->backend, p->link_bytes_per_s, p->stop, &times));
  if (run_profiling_stopped(p)) return NULL;
  PLANC_TRY(measure_run(p, &run));
  return run_profiling_stopped(p) ? NULL : rt_kept_add(p->kept, rt_piece_of_links(&times, &run));
}

static planc_status measure_storage(const run_profiling *p) {
  rt_storage_times times;
  prog_progress(stderr, "storage");
  PLANC_TRY(rt_measure_storage(p->backend, p->storage, p->stop, &times));
  return run_profiling_stopped(p) ? NULL : rt_kept_add(p->kept, rt_piece_of_storage(&times));
}

static bool lacks(const run_profiling *p, bool (*is_of)(const cJSON *piece)) {
  const cJSON *piece;
  cJSON_ArrayForEach(piece, p->kept->pieces) {
    if (is_of(piece)) return false;
  }
  return !run_profiling_stopped(p);
}
