/* `planrun exec`: runs a plan. This file has the command line (cmd_exec.h). */
#include "runtime/cli/cmd_exec.h"

#include "program/interrupts.h"
#include "runtime/cli/planrun.h"

static const prog_option options[] = {
    {"data", 'd', "[JOB:]FILE ...", "train on labelled images: CSV, gzip'ed or not (default: pseudo-random samples)"},
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
    {"hand-on", 0, "FROM:TO[:N] ...",
     "job TO, for inference, takes over job FROM's parameters every N iterations of it"},
    {"trace", 0, "FILE", "write when everything in the last periods ran, for Perfetto and planc simulate --against"},
    {"link", 0, "RATE", "pace copies between host and device, e.g. 0.2GB/s (default: as fast as they go)"},
    {"storage", 0, "DIR", "where what a plan keeps in storage goes: a file without a name in this directory"},
    {"check-nan", 0, NULL, "a job whose loss is no finite number ends there; others go on"},
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

static planc_status run(const prog_arguments *arguments);
static planc_status list_files(const prog_arguments *arguments, prog_used_files *files);
static planc_status read_arguments(run_execution *e, const prog_arguments *arguments);
static planc_status run_to_report(run_execution *e);
static planc_status check_combinations(const prog_arguments *arguments, int64_t iterations);
static planc_status read_options(planrt_options *out, const prog_arguments *arguments);

const prog_subcommand run_cmd_exec = {{"exec", "PLAN", "run a plan", options, 1, 1}, run, list_files};

static planc_status run(const prog_arguments *arguments) {
  run_execution e = {.options.stop = &prog_interrupted};
  PLANC_TRY(read_arguments(&e, arguments));
  PLANC_TRY(planc_plan_read(e.path, &e.plan));
  prog_interrupts_catch("planrun: ending after the periods that are on their way; again to end at once\n", NULL);
  planc_status status = run_to_report(&e);
  run_execution_close(&e);
  if (!status) prog_interrupts_end();
  return status;
}

static planc_status read_arguments(run_execution *e, const prog_arguments *arguments) {
  e->path = arguments->operands[0];
  e->arguments = arguments;
  e->has_data = prog_option_given(arguments, "data");
  e->check_nan = prog_option_given(arguments, "check-nan");
  e->resume = prog_option_value(arguments, "resume");
  e->save = prog_option_value(arguments, "save");
  e->trace = prog_option_value(arguments, "trace");
  e->json = prog_option_given(arguments, "json");
  PLANC_TRY(prog_option_int(arguments, "epochs", 1, 1000000, 1, &e->epochs));
  PLANC_TRY(prog_option_int(arguments, "iterations", 0, INT64_C(1) << 40, e->has_data ? RUN_WHOLE_EPOCHS : 1,
                            &e->iterations));
  PLANC_TRY(prog_option_int(arguments, "interleave", 0, INT64_MAX, -1, &e->interleave));
  PLANC_TRY(check_combinations(arguments, e->iterations));
  PLANC_TRY(read_options(&e->options, arguments));
  if (!prog_option_given(arguments, "watch")) return NULL;
  return planc_context(run_watch_start(&e->watch, prog_option_value(arguments, "watch")), "--watch");
}

/* --- Command line ------------------------------------------------------------------------------------------------- */

/* Going on from a checkpoint and saving to it again is what checkpoints are for; a plan may be watched that runs. */
static planc_status list_files(const prog_arguments *arguments, prog_used_files *files) {
  const char *data;
  PLANC_TRY(prog_used_files_read(files, arguments->operands[0]));
  for (int32_t i = 0; (data = prog_option_repeated(arguments, "data", i)) != NULL; i++)
    PLANC_TRY(prog_used_files_read(files, run_execution_data_file(data, &(run_job_key){0})));
  PLANC_TRY(prog_used_files_read(files, prog_option_value(arguments, "watch")));
  PLANC_TRY(prog_used_files_renew(files, prog_option_value(arguments, "resume"), prog_option_value(arguments, "save")));
  return prog_used_files_write(files, prog_option_value(arguments, "trace"));
}

static planc_status exclude(const prog_arguments *arguments, const char *one, const char *other) {
  if (!prog_option_given(arguments, one) || !prog_option_given(arguments, other)) return NULL;
  return planc_error(PLANC_USAGE, "--%s and --%s exclude each other", one, other);
}

/* No losses come out of a bare run, and nothing is trained. */
static planc_status exclude_from_bare(const prog_arguments *arguments) {
  static const char *const others[] = {"data",       "graph",      "save",      "resume", "watch",
                                       "hand-on",    "trace",      "check-nan", "verify", "synthetic",
                                       "sequential", "interleave", "jitter",    "poison"};
  for (size_t i = 0; i < sizeof others / sizeof *others; i++) PLANC_TRY(exclude(arguments, "bare", others[i]));
  return NULL;
}

static planc_status check_combinations(const prog_arguments *arguments, int64_t iterations) {
  static const char *const pairs[][2] = {
      {"data", "synthetic"},   {"data", "same-samples"}, {"sequential", "interleave"}, {"seed", "resume"},
      {"interleave", "watch"}, {"hand-on", "watch"},     {"graph", "trace"},           {"graph", "sequential"},
      {"graph", "interleave"}, {"epochs", "iterations"}, {"interleave", "trace"},      {"check-nan", "synthetic"}};
  for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) PLANC_TRY(exclude(arguments, pairs[i][0], pairs[i][1]));
  PLANC_TRY(exclude_from_bare(arguments));
  if (prog_option_given(arguments, "epochs") && !prog_option_given(arguments, "data"))
    return planc_error(PLANC_USAGE, "--epochs goes with --data");
  if (prog_option_given(arguments, "trace") && iterations == 0)
    return planc_error(PLANC_USAGE, "--trace: no iteration runs, so there is nothing to write");
  return NULL;
}

static planc_status read_options(planrt_options *out, const prog_arguments *arguments) {
  int64_t seed, jitter;
  const char *backend = prog_option_value(arguments, "backend");
  PLANC_TRY(prog_option_int(arguments, "seed", 0, INT64_MAX, 0, &seed));
  PLANC_TRY(prog_option_int(arguments, "jitter", 1, INT64_MAX, 0, &jitter));
  PLANC_TRY(run_option_rate(arguments, "link", &out->link_bytes_per_s));
  if (backend) PLANC_TRY(planrt_backend_find(backend, &out->backend));
  out->seed = (uint64_t)seed;
  out->jitter = (uint64_t)jitter;
  out->synthetic = prog_option_given(arguments, "synthetic");
  out->verify = prog_option_given(arguments, "verify") || out->synthetic;
  out->same_samples = prog_option_given(arguments, "same-samples");
  out->bare = prog_option_given(arguments, "bare");
  out->replay = prog_option_given(arguments, "graph");
  out->deterministic = prog_option_given(arguments, "deterministic");
  out->poison = prog_option_given(arguments, "poison");
  out->concurrent = !prog_option_given(arguments, "interleave") && !prog_option_given(arguments, "sequential");
  out->timeline = prog_option_given(arguments, "trace") ? TRACED_PERIODS : 0;
  out->storage_path = prog_option_value(arguments, "storage");
  return NULL;
}

/* --- Run and report ----------------------------------------------------------------------------------------------- */

/* A run that differs from the reference has its report all the same, as JSON. */
static planc_status run_to_report(run_execution *e) {
  PLANC_TRY(run_execution_open(e));
  planc_status status = planc_context(run_execution_run(e), "%s", e->path);
  bool wrong = planc_status_code(status) == PLANC_INVALID_PLAN;
  if (status && (!wrong || !e->json)) return status;
  planc_status printed = run_execution_report(e, !wrong);
  if (!printed) return status ? status : run_execution_failures(e);
  planc_status_free(status);
  return printed;
}
