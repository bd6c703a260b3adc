/* planrun: the executor's program. `exec` runs a plan, `info` says what it can run on. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "planc/plan.h"
#include "planrt/data.h"
#include "planrt/planrt.h"
#include "util/options.h"
#include "util/size.h"

/* --- exec ----------------------------------------------------------------------------------------------------- */

static const planc_option exec_options[] = {
    {"data", 'd', "FILE", "train on labelled images: CSV, gzip'ed or not (default: pseudo-random samples)"},
    {"epochs", 'e', "N", "with --data: passes over the data (default 1)"},
    {"iterations", 'n', "N", "iterations to run, rounded up to whole periods (default without --data: 1)"},
    {"seed", 's', "N", "of initial values, shuffles and dropout (default 0)"},
    {"verify", 0, NULL, "run the reference beside the plan and compare every bit"},
    {"synthetic", 0, NULL, "stand-ins for all ops, verified: any graph runs"},
    {"interleave", 0, "SEED", "run streams in an order drawn from SEED, as the plan's events allow"},
    {"poison", 0, NULL, "fill memory with NaNs when it is acquired and released"},
    {"json", 0, NULL, "end with one line of JSON"},
    {0},
};
static const planc_command_line exec_line = {"exec", "PLAN", "run a plan", exec_options, 1, 1};

typedef struct execution {
  const planc_plan *plan;
  planrt_options options;
  planrt_data *data; /* or NULL */
  planrt_session *session;
  int64_t epochs, iterations; /* of job 0: in all, in each epoch */
  int64_t interleave;         /* the seed, -1 = file order */
  double loss;                /* sum over the epoch; then of the last epoch, a mean */
  double accuracy;            /* NaN: not known */
} execution;

/* Sums up the loss of job 0, which rounds give in parts. */
static planc_status take_result(void *user, const planrt_result *result) {
  execution *e = user;
  const planc_graph *graph = e->plan->jobs[0].graph;
  if (result->job != 0 || graph->loss < 0 || graph->tensors[graph->loss].storage != result->storage) return NULL;
  const planc_tensor *loss = &graph->tensors[graph->loss];
  float value = NAN;
  if (loss->dtype == PLANC_DTYPE_f32 && loss->bytes.per_sample == 0 && loss->bytes.fixed == sizeof value &&
      loss->offset.per_sample == 0)
    memcpy(&value, (const char *)result->data + loss->offset.fixed, sizeof value);
  e->loss += (double)value;
  return NULL;
}

static planc_status feed_data(void *user, const planrt_feed_request *request) {
  return planrt_data_feed(((execution *)user)->data, request);
}

static planc_status read_arguments(execution *e, const planc_arguments *arguments) {
  int64_t seed;
  PLANC_TRY(planc_option_int(arguments, "epochs", 1, 1000000, 1, &e->epochs));
  PLANC_TRY(planc_option_int(arguments, "iterations", 0, INT64_C(1) << 40, 1, &e->iterations));
  PLANC_TRY(planc_option_int(arguments, "seed", 0, INT64_MAX, 0, &seed));
  PLANC_TRY(planc_option_int(arguments, "interleave", 0, INT64_MAX, -1, &e->interleave));
  bool data = planc_option_given(arguments, "data");
  if (planc_option_given(arguments, "epochs") && (!data || planc_option_given(arguments, "iterations")))
    return planc_error(PLANC_USAGE, "--epochs goes with --data and without --iterations");
  e->options.seed = (uint64_t)seed;
  e->options.synthetic = planc_option_given(arguments, "synthetic");
  e->options.verify = planc_option_given(arguments, "verify") || e->options.synthetic;
  e->options.poison = planc_option_given(arguments, "poison");
  if (data && e->options.synthetic) return planc_error(PLANC_USAGE, "--synthetic makes no use of --data");
  if (e->options.poison && e->interleave >= 0)
    return planc_error(PLANC_USAGE, "--poison needs the file's order: it excludes --interleave");
  return NULL;
}

static bool classifies(const planc_graph *graph) {
  for (int32_t o = 0; o < graph->n_ops; o++)
    if (strcmp(graph->ops[o].type, "softmax_xent") == 0) return true;
  return false;
}

static planc_status open_session(execution *e, const planc_arguments *arguments) {
  const char *path = planc_option_value(arguments, "data");
  e->options.user = e;
  e->options.sink = take_result;
  if (path) {
    PLANC_TRY(planrt_data_read(path, e->options.seed, &e->data));
    PLANC_TRY(planc_context(planrt_data_bind(e->data, &e->plan->jobs[0]), "%s", path));
    if (e->plan->n_jobs > 1) return planc_error(PLANC_USAGE, "--data feeds plans of one job");
    e->options.feed = feed_data;
    e->options.evaluate = classifies(e->plan->jobs[0].graph) && planrt_data_held_out(e->data) > 0;
    if (!planc_option_given(arguments, "iterations")) e->iterations = planrt_data_iterations(e->data);
  }
  PLANC_TRY(planc_context(planrt_session_new(e->plan, &e->options, &e->session), "%s", arguments->operands[0]));
  return planrt_init(e->session);
}

static planc_status run_epochs(execution *e) {
  int64_t per_period = e->plan->jobs[0].iterations, done = 0;
  for (int64_t epoch = 0; epoch < e->epochs; epoch++) {
    /* Whole periods only: what an epoch runs too much the next one runs less. */
    int64_t periods = ((epoch + 1) * e->iterations - done + per_period - 1) / per_period;
    e->loss = 0;
    PLANC_TRY(e->interleave >= 0
                  ? planrt_run_interleaved(e->session, periods, (uint64_t)e->interleave + (uint64_t)epoch)
                  : planrt_run(e->session, periods));
    e->loss = e->options.synthetic ? NAN : e->loss / (double)(periods * per_period);
    done += periods * per_period;
    if (e->data && !isnan(e->loss)) printf("epoch %lld: loss %.9g\n", (long long)epoch + 1, e->loss);
  }
  e->iterations = done;
  if (!e->options.evaluate) return NULL;
  return planrt_evaluate(e->session, planrt_data_feed_held_out, e->data, planrt_data_held_out(e->data), &e->accuracy);
}

static void print_number(const char *key, double value) {
  if (isfinite(value))
    printf("\"%s\":%.9g,", key, value);
  else
    printf("\"%s\":null,", key);
}

static void print_report(const execution *e, bool valid, bool json) {
  const planc_check_report *report = planrt_report(e->session);
  if (json) {
    printf("{\"planrun\":\"exec/1\",");
    print_number("loss", e->loss);
    print_number("accuracy", e->accuracy);
    printf("\"verified\":%s,\"iterations\":%lld,\"peak_bytes\":%lld,\"host_peak_bytes\":%lld}\n",
           e->options.verify ? (valid ? "true" : "false") : "null", (long long)e->iterations,
           (long long)report->peak_bytes, (long long)report->host_peak_bytes);
    return;
  }
  if (!valid) return;
  char peak[PLANC_SIZE_TEXT], host[PLANC_SIZE_TEXT];
  printf("iterations %lld\n", (long long)e->iterations);
  if (isfinite(e->loss)) printf("loss %.9g\n", e->loss);
  if (isfinite(e->accuracy)) printf("accuracy %.4f\n", e->accuracy);
  printf("peak %s, host %s\n", planc_size_format(report->peak_bytes, peak),
         planc_size_format(report->host_peak_bytes, host));
  if (e->options.verify) printf("verified: every bit as in the reference\n");
}

static planc_status exec_plan(execution *e, const planc_arguments *arguments) {
  bool json = planc_option_given(arguments, "json");
  PLANC_TRY(open_session(e, arguments));
  planc_status status = planc_context(run_epochs(e), "%s", arguments->operands[0]);
  bool wrong = planc_status_code(status) == PLANC_INVALID_PLAN;
  if (!status || wrong) print_report(e, !wrong, json);
  return status;
}

static planc_status exec(const planc_arguments *arguments) {
  execution e = {.accuracy = NAN};
  planc_plan *plan;
  PLANC_TRY(read_arguments(&e, arguments));
  PLANC_TRY(planc_plan_read(arguments->operands[0], &plan));
  e.plan = plan;
  planc_status status = exec_plan(&e, arguments);
  planrt_session_free(e.session);
  planrt_data_free(e.data);
  planc_plan_free(plan);
  return status;
}

/* --- info ----------------------------------------------------------------------------------------------------- */

static const planc_option info_options[] = {{0}};
static const planc_command_line info_line = {"info", "", "backends and versions", info_options, 0, 0};

static planc_status info(const planc_arguments *arguments) {
  (void)arguments;
  printf("planrun %s, plan format %d\nbackend host: one thread, f32\n", PLANRT_VERSION, PLANC_PLAN_VERSION);
  return NULL;
}

/* --- The program ---------------------------------------------------------------------------------------------- */

static const struct command {
  const planc_command_line *line;
  planc_status (*run)(const planc_arguments *arguments);
} commands[] = {{&exec_line, exec}, {&info_line, info}};
enum { N_COMMANDS = sizeof commands / sizeof *commands };

static void print_usage(void) {
  printf("usage: planrun COMMAND [operand ...] [option ...]\n\ncommands:\n");
  for (int i = 0; i < N_COMMANDS; i++) printf("  %-10s %s\n", commands[i].line->name, commands[i].line->summary);
  printf(
      "\n'planrun COMMAND --help' tells a command's options.\n"
      "options: --version, --help\n"
      "exit: 0 done, 1 plan not valid or not as the reference, 2 usage, 3 bad input, 5 internal, 6 device\n");
}

static planc_status run(int argc, char **argv) {
  if (argc < 2) return planc_error(PLANC_USAGE, "no command given; 'planrun --help' lists them");
  if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0) {
    print_usage();
    return NULL;
  }
  if (strcmp(argv[1], "--version") == 0) {
    printf("planrun %s, plan format %d\n", PLANRT_VERSION, PLANC_PLAN_VERSION);
    return NULL;
  }
  for (int i = 0; i < N_COMMANDS; i++) {
    if (strcmp(argv[1], commands[i].line->name) != 0) continue;
    planc_arguments arguments;
    PLANC_TRY(planc_context(planc_options_parse(commands[i].line, argc - 2, argv + 2, &arguments), "%s", argv[1]));
    if (!arguments.help) return commands[i].run(&arguments);
    planc_options_help("planrun", commands[i].line, stdout);
    return NULL;
  }
  return planc_error(PLANC_USAGE, "unknown command %s; 'planrun --help' lists them", argv[1]);
}

int main(int argc, char **argv) {
  planc_status status = run(argc, argv);
  if (!status && (fflush(stdout) || ferror(stdout)))
    status = planc_error(PLANC_IO, "standard output cannot be written");
  if (!status) return 0;
  fprintf(stderr, "planrun: %s\n", planc_status_message(status));
  int code = planc_exit_code(planc_status_code(status));
  planc_status_free(status);
  return code;
}
