/* `planrun exec`: runs a plan. */
#define _DEFAULT_SOURCE /* SA_RESTART */
#include <errno.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "planc/plan.h"
#include "planrt/data.h"
#include "planrt/planrt.h"
#include "runtime/backend.h"
#include "runtime/foreign.h"
#include "runtime/losses.h"
#include "runtime/planrun.h"
#include "runtime/watch.h"
#include "util/clock.h"
#include "util/file.h"
#include "util/json_tree.h"
#include "util/math.h"
#include "util/print.h"
#include "util/size.h"

static const planc_option options[] = {
    {"data", 'd', "FILE", "train on labelled images: CSV, gzip'ed or not (default: pseudo-random samples)"},
    {"backend", 0, "NAME", "what executes: host (default) or cuda"},
    {"graph", 0, NULL, "capture the body once and replay it as a whole (backend cuda)"},
    {"bare", 0, NULL, "run calls and copies on one stream without events, to hold a run's time against"},
    {"deterministic", 0, NULL, "refuse algorithms that do not give the same bits every time"},
    {"epochs", 'e', "N", "with --data: passes over the data, in all (default 1)"},
    {"iterations", 'n', "N", "iterations in all, rounded up to whole periods (default without --data: 1)"},
    {"same-samples", 0, NULL, "take the first iterations' samples in every period: times the device, not the feed"},
    {"seed", 's', "N", "of initial values, shuffles and dropout (default 0)"},
    {"save", 0, "FILE", "write a checkpoint after each epoch, at the end and when interrupted"},
    {"resume", 0, "FILE", "go on from a checkpoint"},
    {"watch", 0, "FILE", "change to the plan in FILE whenever a new one is put there"},
    {"trace", 0, "FILE", "write when everything in the last periods ran, for Perfetto and planc simulate --against"},
    {"link", 0, "RATE", "pace copies between host and device, e.g. 0.2GB/s (default: as fast as they go)"},
    {"storage", 0, "DIR", "where what a plan keeps in storage goes: a file without a name in this directory"},
    {"verify", 0, NULL, "run the reference beside the plan and compare every bit"},
    {"synthetic", 0, NULL, "stand-ins for all ops, verified: any graph runs"},
    {"sequential", 0, NULL, "one thread, in file order (default: a thread for each stream)"},
    {"interleave", 0, "SEED", "one thread, in an order drawn from SEED, as the plan's events allow"},
    {"jitter", 0, "SEED", "random delays before the work of every stream"},
    {"poison", 0, NULL, "fill memory with NaNs when it is acquired, and in file order when released"},
    {"json", 0, NULL, "end with one line of JSON"},
    {0},
};

enum { TRACED_PERIODS = 64 };

typedef struct execution {
  planc_plan *plan;
  planrt_options options;
  planrt_data *data; /* or NULL */
  planrt_session *session;
  const char *save;   /* path, or NULL */
  const char *trace;  /* path, or NULL */
  planrt_watch watch; /* its path NULL: nothing is watched */
  planc_plan *next;   /* found there, and to be changed to; or NULL */
  int64_t adopted;    /* plans changed to */
  int64_t periods;    /* run with the plan */
  int64_t epochs;     /* in all */
  int64_t per_epoch;  /* iterations of job 0 */
  int64_t interleave; /* the seed, -1 = none */
  planrt_losses losses;
  int64_t run_ns;  /* in planrt_run: prologues, bodies, epilogues */
  double loss;     /* mean of the last epoch; NaN: not known */
  double accuracy; /* NaN: not known */
} execution;

/* The signal that came: the period that runs is the last. */
static volatile sig_atomic_t interrupted;

static void interrupt(int number) {
  static const char text[] = "planrun: ending after this period; again to end at once\n";
  int error = errno;
  interrupted = number;
  if (write(STDERR_FILENO, text, sizeof text - 1) < 0) errno = 0; /* who cannot be told is ended all the same */
  errno = error;
}

/* The loss of job 0, of all its replicas; stand-ins and bare runs have none. */
static planc_status take_result(void *user, const planrt_result *result) {
  execution *e = user;
  const planc_graph *graph = e->plan->jobs[0].graph;
  if (e->options.synthetic || e->options.bare) return NULL;
  if (result->job != 0 || graph->loss < 0 || graph->tensors[graph->loss].storage != result->storage) return NULL;
  const planc_tensor *loss = &graph->tensors[graph->loss];
  float value = NAN;
  if (loss->dtype == PLANC_DTYPE_f32 && loss->bytes.per_sample == 0 && loss->bytes.fixed == sizeof value &&
      loss->offset.per_sample == 0)
    memcpy(&value, (const char *)result->data + loss->offset.fixed, sizeof value);
  return planrt_losses_add(&e->losses, result->iteration, (double)value);
}

static planc_status feed_data(void *user, const planrt_feed_request *request) {
  return planrt_data_feed(((execution *)user)->data, request);
}

/* --- Changing plans --------------------------------------------------------------------------------------------- */

static void go_on(planc_status status) {
  if (status) planc_print_line(stderr, "planrun: note: %s: the run goes on as before", planc_status_message(status));
  planc_status_free(status);
}

static bool look_for_plan(void *user) {
  execution *e = user;
  go_on(planrt_watch_look(&e->watch, e->session, &e->next));
  return e->next != NULL;
}

static int64_t iterations_done(const execution *e) {
  return planrt_get_step(e->session).period * e->plan->jobs[0].iterations;
}

/* A plan that cannot be opened is left, and the run goes on; without any plan it cannot. */
static planc_status adopt(execution *e) {
  planc_plan *next = e->next;
  e->next = NULL;
  planc_status status = planc_context(planrt_adopt(&e->session, next), "%s", e->watch.path);
  if (status) {
    planc_plan_free(next);
    if (!planrt_can_run(e->session)) return status;
    go_on(status);
    return NULL;
  }
  if (e->data) status = planrt_data_bind(e->data, &next->jobs[0]);
  planc_plan_free(e->plan);
  e->plan = next;
  e->periods = 0;
  e->adopted++;
  char text[PLANC_SIZE_TEXT];
  planc_print_line(stderr, "planrun: note: iteration %lld: changed to %s, policy %s in %s",
                   (long long)iterations_done(e), e->watch.path, next->policy,
                   planc_size_format(planrt_report(e->session)->peak_bytes, text));
  return status;
}

/* --- Command line ----------------------------------------------------------------------------------------------- */

/* Going on from a checkpoint and saving to it again is what checkpoints are for; a plan may be watched that runs. */
static planc_status list_files(const planc_arguments *arguments, planc_used_files *files) {
  static const char *const inputs[] = {"data", "watch"};
  PLANC_TRY(planc_used_files_read(files, arguments->operands[0]));
  for (size_t i = 0; i < sizeof inputs / sizeof *inputs; i++)
    PLANC_TRY(planc_used_files_read(files, planc_option_value(arguments, inputs[i])));
  PLANC_TRY(
      planc_used_files_renew(files, planc_option_value(arguments, "resume"), planc_option_value(arguments, "save")));
  return planc_used_files_write(files, planc_option_value(arguments, "trace"));
}

static planc_status exclude(const planc_arguments *arguments, const char *one, const char *other) {
  if (!planc_option_given(arguments, one) || !planc_option_given(arguments, other)) return NULL;
  return planc_error(PLANC_USAGE, "--%s and --%s exclude each other", one, other);
}

/* No losses come out of a bare run, and nothing is trained. */
static planc_status exclude_from_bare(const planc_arguments *arguments) {
  static const char *const others[] = {"data",   "graph",     "save",       "resume",     "watch",  "trace",
                                       "verify", "synthetic", "sequential", "interleave", "jitter", "poison"};
  for (size_t i = 0; i < sizeof others / sizeof *others; i++) PLANC_TRY(exclude(arguments, "bare", others[i]));
  return NULL;
}

static planc_status read_arguments(execution *e, const planc_arguments *arguments) {
  int64_t seed, jitter;
  PLANC_TRY(planc_option_int(arguments, "epochs", 1, 1000000, 1, &e->epochs));
  PLANC_TRY(planc_option_int(arguments, "iterations", 0, INT64_C(1) << 40, 1, &e->per_epoch));
  PLANC_TRY(planc_option_int(arguments, "seed", 0, INT64_MAX, 0, &seed));
  PLANC_TRY(planc_option_int(arguments, "interleave", 0, INT64_MAX, -1, &e->interleave));
  PLANC_TRY(planc_option_int(arguments, "jitter", 1, INT64_MAX, 0, &jitter));
  PLANC_TRY(planrt_option_rate(arguments, "link", &e->options.link_bytes_per_s));
  PLANC_TRY(exclude(arguments, "data", "synthetic"));
  PLANC_TRY(exclude(arguments, "data", "same-samples"));
  PLANC_TRY(exclude(arguments, "sequential", "interleave"));
  PLANC_TRY(exclude(arguments, "seed", "resume"));
  PLANC_TRY(exclude(arguments, "interleave", "watch"));
  PLANC_TRY(exclude(arguments, "graph", "trace"));
  PLANC_TRY(exclude(arguments, "graph", "sequential"));
  PLANC_TRY(exclude(arguments, "graph", "interleave"));
  PLANC_TRY(exclude(arguments, "epochs", "iterations"));
  PLANC_TRY(exclude_from_bare(arguments));
  if (planc_option_given(arguments, "epochs") && !planc_option_given(arguments, "data"))
    return planc_error(PLANC_USAGE, "--epochs goes with --data");
  if (planc_option_given(arguments, "trace") && e->per_epoch == 0)
    return planc_error(PLANC_USAGE, "--trace: no iteration runs, so there is nothing to write");
  e->options.seed = (uint64_t)seed;
  e->options.jitter = (uint64_t)jitter;
  e->options.synthetic = planc_option_given(arguments, "synthetic");
  e->options.verify = planc_option_given(arguments, "verify") || e->options.synthetic;
  e->options.same_samples = planc_option_given(arguments, "same-samples");
  e->options.bare = planc_option_given(arguments, "bare");
  e->options.replay = planc_option_given(arguments, "graph");
  e->options.deterministic = planc_option_given(arguments, "deterministic");
  e->options.poison = planc_option_given(arguments, "poison");
  e->options.concurrent = e->interleave < 0 && !planc_option_given(arguments, "sequential");
  const char *backend = planc_option_value(arguments, "backend");
  if (backend) PLANC_TRY(planrt_backend_find(backend, &e->options.backend));
  e->losses.keeps = planc_option_given(arguments, "json");
  e->options.storage_path = planc_option_value(arguments, "storage");
  e->save = planc_option_value(arguments, "save");
  e->trace = planc_option_value(arguments, "trace");
  if (e->trace) e->options.timeline = TRACED_PERIODS;
  if (e->trace) PLANC_TRY(planc_file_probe(e->trace));
  if (e->save) PLANC_TRY(planc_file_probe(e->save));
  if (planc_option_given(arguments, "watch")) {
    planrt_watch_start(&e->watch, planc_option_value(arguments, "watch"));
    e->options.pause = look_for_plan;
  }
  return NULL;
}

/* --- Running ---------------------------------------------------------------------------------------------------- */

static bool classifies(const planc_graph *graph) {
  for (int32_t o = 0; o < graph->n_ops; o++)
    if (strcmp(graph->ops[o].type, "softmax_xent") == 0) return true;
  return false;
}

static planc_status open_data(execution *e, const planc_arguments *arguments, const char *path) {
  if (e->plan->n_jobs > 1) return planc_error(PLANC_USAGE, "--data feeds plans of one job");
  PLANC_TRY(planrt_data_read(path, e->options.seed, &e->data));
  PLANC_TRY(planc_context(planrt_data_bind(e->data, &e->plan->jobs[0]), "%s", path));
  e->options.feed = feed_data;
  e->options.evaluate = classifies(e->plan->jobs[0].graph) && planrt_data_held_out(e->data) > 0;
  if (!planc_option_given(arguments, "iterations")) e->per_epoch = planrt_data_iterations(e->data);
  return NULL;
}

/* No plan knows how many queues a device has. */
static void note_streams(const execution *e) {
  int32_t streams, queues;
  planrt_streams_of(e->session, &streams, &queues);
  if (streams <= queues) return;
  planc_print_line(
      stderr,
      "planrun: note: the run has %d streams, and the device %d hardware queues: some wait for each other; "
      "CUDA_DEVICE_MAX_CONNECTIONS gives it up to 32",
      streams, queues);
}

/* A plan made from a description, say, names algorithms that no library has. */
static planc_status note_foreign(const execution *e) {
  enum { MOST = 4 };
  planrt_names names = {0};
  char text[256] = "";
  size_t length = 0;
  planc_status status = planrt_foreign_find(e->session, &names);
  for (int64_t i = 0; i < names.len && i < MOST && length < sizeof text; i++)
    length += (size_t)snprintf(text + length, sizeof text - length, "%s%s", i == 0 ? "" : ", ", names.data[i]);
  if (!status && names.len > 0)
    planc_print_line(
        stderr,
        "planrun: note: backend %s does not have the plan's algorithms %s%s: plain ones stand in, which may "
        "take far longer; a profile of planrun profile has its own to plan with",
        e->options.backend ? e->options.backend->name : "host", text, names.len > MOST ? ", ..." : "");
  VEC_FREE(&names);
  return status;
}

static planc_status open_session(execution *e, const planc_arguments *arguments) {
  const char *path = planc_option_value(arguments, "data"), *resume = planc_option_value(arguments, "resume");
  e->options.user = e;
  e->options.sink = take_result;
  e->options.stop = &interrupted;
  if (path) PLANC_TRY(open_data(e, arguments, path));
  PLANC_TRY(planc_context(planrt_session_new(e->plan, &e->options, &e->session), "%s", arguments->operands[0]));
  note_streams(e);
  PLANC_TRY(note_foreign(e));
  if (!resume) return planrt_init(e->session);
  PLANC_TRY(planrt_resume(e->session, resume));
  if (e->data) planrt_data_reseed(e->data, planrt_seed(e->session));
  return NULL;
}

/* Runs so many periods, with a plan or with several. */
static planc_status run_periods(execution *e, int64_t periods, int64_t epoch) {
  int64_t left = periods;
  do {
    if (e->next) PLANC_TRY(adopt(e));
    int64_t before = planrt_get_step(e->session).period, begin_ns = planc_now_ns();
    PLANC_TRY(e->interleave >= 0 ? planrt_run_interleaved(e->session, left, (uint64_t)(e->interleave + epoch))
                                 : planrt_run(e->session, left));
    e->run_ns += planc_now_ns() - begin_ns;
    int64_t done = planrt_get_step(e->session).period - before;
    e->periods += done;
    left -= done;
  } while (e->next && left > 0 && !interrupted);
  return NULL;
}

/* Runs up to the end of epoch `epoch`, in whole periods: what an epoch runs too much the next one runs less. */
static planc_status run_epoch(execution *e, int64_t epoch) {
  int64_t per_period = e->plan->jobs[0].iterations;
  int64_t left = (epoch + 1) * e->per_epoch - iterations_done(e);
  int64_t periods = left > 0 ? (left + per_period - 1) / per_period : 0;
  planrt_losses_begin(&e->losses);
  PLANC_TRY(run_periods(e, periods, epoch));
  PLANC_TRY(planrt_losses_end(&e->losses, &e->loss));
  if (e->save) PLANC_TRY(planrt_save(e->session, e->save));
  if (e->data && isfinite(e->loss) && !interrupted) printf("epoch %lld: loss %.9g\n", (long long)epoch + 1, e->loss);
  return NULL;
}

/* Where nothing has run with the plan there is nothing to write: a file that is there already is of another run. */
static planc_status write_trace(const execution *e) {
  if (!e->trace) return NULL;
  if (e->periods > 0) return planrt_timeline_write(e->session, e->trace);
  planc_print_line(stderr, "planrun: note: no period has run with the plan: %s is not written", e->trace);
  return NULL;
}

/* Iterations count from the start of training, those before the checkpoint included. */
static void note_what_is_left(const execution *e) {
  int64_t done = iterations_done(e), in_all;
  if (planc_mul_overflow(e->per_epoch, e->epochs, &in_all) || done == 0 || done < in_all) return;
  planc_print_line(stderr,
                   "planrun: note: the checkpoint is of iteration %lld, and %lld in all are asked for: none is left",
                   (long long)done, (long long)in_all);
}

static planc_status run_epochs(execution *e) {
  PLANC_TRY(planrt_losses_start(&e->losses, e->plan->jobs[0].iterations));
  int64_t done = iterations_done(e);
  note_what_is_left(e);
  for (int64_t epoch = e->per_epoch > 0 ? done / e->per_epoch : 0; epoch < e->epochs && !interrupted; epoch++) {
    PLANC_TRY(run_epoch(e, epoch));
    fflush(stdout);
  }
  PLANC_TRY(write_trace(e));
  if (!e->options.evaluate) return NULL;
  planc_status status =
      planrt_evaluate(e->session, planrt_data_feed_held_out, e->data, planrt_data_held_out(e->data), &e->accuracy);
  if (planc_status_code(status) != PLANC_INFEASIBLE) return status;
  planc_print_line(stderr, "planrun: note: %s: the accuracy is not known", planc_status_message(status));
  planc_status_free(status);
  return NULL;
}

/* --- Reports ---------------------------------------------------------------------------------------------------- */

static cJSON *make_json(const execution *e, bool valid) {
  const planc_check_report *report = planrt_report(e->session);
  cJSON *root = cJSON_CreateObject();
  planc_json_add_string(root, "planrun", "exec/1");
  planc_json_add_finite(root, "loss", e->loss);
  cJSON *losses = planc_json_add_array(root, "losses");
  for (int64_t i = 0; i < e->losses.kept.len; i++) planc_json_add_finite(losses, NULL, e->losses.kept.data[i]);
  planc_json_add_finite(root, "accuracy", e->accuracy);
  if (e->options.verify)
    planc_json_add_bool(root, "verified", valid);
  else
    planc_json_add_null(root, "verified");
  planc_json_add_int(root, "iterations", iterations_done(e));
  planc_json_add_bool(root, "interrupted", interrupted != 0);
  planc_json_add_int(root, "peak_bytes", report->peak_bytes);
  planc_json_add_int(root, "host_peak_bytes", report->host_peak_bytes);
  planc_json_add_int(root, "storage_peak_bytes", report->storage_peak_bytes);
  planc_json_add_int(root, "taken_bytes", planrt_taken(e->session));
  planc_json_add_int(root, "run_ns", e->run_ns);
  planc_json_add_known(root, "period_ns", planrt_period(e->session) > 0, planrt_period(e->session));
  planc_json_add_int(root, "plans_adopted", e->adopted);
  return root;
}

static void print_text(const execution *e) {
  const planc_check_report *report = planrt_report(e->session);
  char peak[PLANC_SIZE_TEXT], host[PLANC_SIZE_TEXT], storage[PLANC_SIZE_TEXT];
  printf("iterations %lld%s\n", (long long)iterations_done(e), interrupted ? " (interrupted)" : "");
  if (isfinite(e->loss)) printf("loss %.9g\n", e->loss);
  if (isfinite(e->accuracy)) printf("accuracy %.4f\n", e->accuracy);
  printf("peak %s, host %s", planc_size_format(report->peak_bytes, peak),
         planc_size_format(report->host_peak_bytes, host));
  if (report->storage_peak_bytes > 0) printf(", storage %s", planc_size_format(report->storage_peak_bytes, storage));
  printf("\n");
  int64_t period_ns = planrt_period(e->session);
  if (e->options.bare && period_ns > 0) printf("period %.3f ms\n", (double)period_ns / 1e6);
  if (e->options.verify) printf("verified: every bit as in the reference\n");
}

static planc_status exec_plan(execution *e, const planc_arguments *arguments) {
  PLANC_TRY(open_session(e, arguments));
  planc_status status = planc_context(run_epochs(e), "%s", arguments->operands[0]);
  bool wrong = planc_status_code(status) == PLANC_INVALID_PLAN;
  if (status && !wrong) return status;
  planc_status printed = NULL;
  if (planc_option_given(arguments, "json"))
    printed = planc_print_json(stdout, make_json(e, !wrong));
  else if (!wrong)
    print_text(e);
  if (!printed) return status;
  planc_status_free(status);
  return printed;
}

static planc_status run(const planc_arguments *arguments) {
  execution e = {.loss = NAN, .accuracy = NAN};
  PLANC_TRY(read_arguments(&e, arguments));
  PLANC_TRY(planc_plan_read(arguments->operands[0], &e.plan));
  struct sigaction action = {.sa_handler = interrupt, .sa_flags = SA_RESTART | (int)SA_RESETHAND};
  sigaction(SIGINT, &action, NULL);
  sigaction(SIGTERM, &action, NULL);
  planc_status status = exec_plan(&e, arguments);
  planrt_session_free(e.session);
  planrt_data_free(e.data);
  planc_plan_free(e.next);
  planc_plan_free(e.plan);
  planrt_losses_free(&e.losses);
  /* Whoever waits for the program is to see that it was interrupted. */
  if (!status && interrupted && fflush(stdout) == 0) raise(interrupted);
  return status;
}

const planc_subcommand planrt_cmd_exec = {{"exec", "PLAN", "run a plan", options, 1, 1}, run, list_files};
