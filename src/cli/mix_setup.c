/* Mixes from the command line (mix_setup.h). */
#include "cli/mix_setup.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "plan/job_name.h"

static const char inference[] = "inference";

static planc_status read_name(const char **text, cli_mix_operand *out);
static char *last_field(char *text);
static planc_status read_numbers(const char *operand, cli_mix_operand *out);
static bool is_number(const char *text);
static planc_status read_number(const char *operand, const char *what, const char *text, int64_t most, int64_t *out);

planc_status cli_mix_operand_parse(const char *text, cli_mix_operand *out) {
  const char *path = text;
  *out = (cli_mix_operand){0};
  PLANC_TRY(read_name(&path, out));
  out->path = strdup(path);
  if (!out->path) return planc_error(PLANC_OUT_OF_MEMORY, "out of memory");
  char *last = last_field(out->path);
  if (last && strcmp(last, inference) == 0) {
    out->inference = true;
    last[-1] = '\0';
  }
  return read_numbers(text, out);
}

void cli_mix_operand_free(cli_mix_operand *operand) {
  free(operand->name);
  free(operand->path);
}

/* One that has a name may be alone: it is what is left of others in a run, and is known there by its name. */
planc_status cli_mix_check_number(const prog_arguments *arguments) {
  cli_mix_operand only;
  if (arguments->n_operands > 1 || prog_option_given(arguments, "accumulate")) return NULL;
  planc_status status = cli_mix_operand_parse(arguments->operands[0], &only);
  bool named = only.name != NULL;
  cli_mix_operand_free(&only);
  if (status || named) return status;
  return planc_error(PLANC_USAGE, "one job has the GPU alone: name others, or --accumulate, or plan it by itself");
}

/* What stands before a = and could be a name is one. */
static planc_status read_name(const char **text, cli_mix_operand *out) {
  size_t length = pl_job_name_length(*text);
  if (length == 0 || (*text)[length] != '=') return NULL;
  out->name = strndup(*text, length);
  if (!out->name) return planc_error(PLANC_OUT_OF_MEMORY, "out of memory");
  const char *fault = pl_job_name_fault(out->name);
  if (fault) return planc_error(PLANC_USAGE, "%s: the job's name %s", *text, fault);
  *text += length + 1;
  return NULL;
}

/* Numbers from the right: iterations, batch; or a batch alone. */
static planc_status read_numbers(const char *operand, cli_mix_operand *out) {
  int64_t iterations = 0;
  char *last = last_field(out->path), *before;
  if (!last || !is_number(last)) return NULL;
  last[-1] = '\0';
  before = last_field(out->path);
  if (!before || !is_number(before)) return read_number(operand, "batch", last, INT32_MAX, &out->batch);
  before[-1] = '\0';
  PLANC_TRY(read_number(operand, "batch", before, INT32_MAX, &out->batch));
  PLANC_TRY(read_number(operand, "iterations", last, PLANC_MIX_MAX_ITERATIONS, &iterations));
  out->iterations = (int32_t)iterations;
  return NULL;
}

/* --- Operands ----------------------------------------------------------------------------------------------------- */

/* Cuts the last field off, behind a colon that is not the first character. NULL where there is none. */
static char *last_field(char *text) {
  char *colon = strrchr(text, ':');
  return colon && colon != text && !strchr(colon, '/') ? colon + 1 : NULL;
}

static bool is_number(const char *text) {
  return *text && text[strspn(text, "0123456789")] == '\0';
}

static planc_status read_number(const char *operand, const char *what, const char *text, int64_t most, int64_t *out) {
  char *end;
  errno = 0;
  long long value = strtoll(text, &end, 10);
  *out = value;
  if (errno == 0 && *end == '\0' && value >= 1 && value <= most) return NULL;
  return planc_error(PLANC_USAGE, "%s: %s %s: not an integer from 1 to %lld", operand, what, text, (long long)most);
}

/* --- Jobs --------------------------------------------------------------------------------------------------------- */

static planc_status read_common(const prog_arguments *arguments, planc_mix *out, planc_workload *out_job);
static planc_status set_priority(const char *text, int32_t job, cli_mix *mix);
static planc_status set_weight(const char *text, int32_t job, cli_mix *mix);
static planc_status read_of_jobs(const prog_arguments *arguments, const char *option,
                                 planc_status (*set)(const char *text, int32_t job, cli_mix *mix), cli_mix *mix);
static planc_status read_operands(const prog_arguments *arguments, cli_mix *out);
static planc_status read_job(const prog_arguments *arguments, const planc_workload *common, cli_mix *mix, int32_t job);
static planc_status read_profile(const prog_arguments *arguments, cli_mix *mix, int32_t job);

planc_status cli_mix_read(const prog_arguments *arguments, cli_mix *out) {
  planc_workload common;
  *out = (cli_mix){0};
  PLANC_TRY(read_common(arguments, &out->mix, &common));
  PLANC_TRY(read_operands(arguments, out));
  for (int32_t j = 0; j < out->n; j++) PLANC_TRY(read_job(arguments, &common, out, j));
  if (prog_option_given(arguments, "optimizer") && !out->takes_optimizer)
    return planc_error(PLANC_USAGE, "--optimizer: every graph has backward ops already, or is for inference");
  for (int32_t j = 0; j < out->n; j++) PLANC_TRY(read_profile(arguments, out, j));
  PLANC_TRY(read_of_jobs(arguments, "priority", set_priority, out));
  PLANC_TRY(read_of_jobs(arguments, "weight", set_weight, out));
  cli_mix_note_devices(out);
  return cli_mix_read_rounds(arguments, out);
}

planc_status cli_mix_allocate(int32_t n, cli_mix *out) {
  size_t count = (size_t)n;
  out->operands = calloc(count, sizeof *out->operands);
  out->graphs = calloc(count, sizeof(planc_graph *));
  out->profiles = calloc(count, sizeof(planc_profile *));
  out->jobs = calloc(count, sizeof *out->jobs);
  out->iterations = calloc(count, sizeof *out->iterations);
  out->names = calloc(count, sizeof *out->names);
  out->deadlines_ns = calloc(count, sizeof *out->deadlines_ns);
  out->least_shares_ppm = calloc(count, sizeof *out->least_shares_ppm);
  out->weights = calloc(count, sizeof *out->weights);
  if (!out->operands || !out->graphs || !out->profiles || !out->jobs || !out->iterations || !out->names ||
      !out->deadlines_ns || !out->least_shares_ppm || !out->weights)
    return planc_error(PLANC_OUT_OF_MEMORY, "out of memory");
  out->n = n;
  out->mix.n_jobs = n;
  out->mix.jobs = out->jobs;
  out->mix.iterations = out->iterations;
  out->mix.names = out->names;
  out->mix.deadlines_ns = out->deadlines_ns;
  out->mix.least_shares_ppm = out->least_shares_ppm;
  out->mix.weights = out->weights;
  for (int32_t j = 0; j < n; j++) out->weights[j] = 1;
  return NULL;
}

planc_status cli_mix_budget(int64_t bytes, cli_mix *mix) {
  mix->mix.terms.budgets[PLANC_MEMORY_DEVICE] = bytes;
  return cli_setup_budget(planc_mix_device(&mix->mix), &mix->mix.terms);
}

void cli_mix_free(cli_mix *mix) {
  for (int32_t j = 0; j < mix->n; j++) {
    planc_profile_free(mix->profiles[j]);
    planc_graph_free(mix->graphs[j]);
    cli_mix_operand_free(&mix->operands[j]);
  }
  free(mix->operands);
  free(mix->graphs);
  free(mix->profiles);
  free(mix->jobs);
  free(mix->iterations);
  free(mix->names);
  free(mix->deadlines_ns);
  free(mix->least_shares_ppm);
  free(mix->weights);
}

planc_status cli_mix_policy(const char *name, bool for_plan, const planc_mix_policy **out) {
  char known[256] = "";
  size_t length = 0;
  *out = planc_mix_policy_find(name);
  if (*out && for_plan && !(*out)->make)
    return planc_error(PLANC_USAGE, "%s has no plan: compare --colocate compares with it", name);
  for (const planc_mix_policy *policy = planc_mix_policies(); !*out && policy->name && length < sizeof known; policy++)
    if (policy->make || !for_plan)
      length += (size_t)snprintf(known + length, sizeof known - length, "%s%s", length > 0 ? ", " : "", policy->name);
  if (*out) return NULL;
  if (planc_policy_find(name))
    return planc_error(PLANC_USAGE, "policy %s is for one job, for several: %s", name, known);
  return planc_error(PLANC_USAGE, "unknown policy %s for several jobs: %s", name, known);
}

planc_status cli_mix_list_files(const prog_arguments *arguments, prog_used_files *files) {
  for (int32_t j = 0; j < arguments->n_operands; j++) {
    cli_mix_operand operand;
    planc_status status = cli_mix_operand_parse(arguments->operands[j], &operand);
    if (!status) status = prog_used_files_read(files, operand.path);
    cli_mix_operand_free(&operand);
    PLANC_TRY(status);
  }
  const char *profile;
  for (int32_t k = 0; (profile = prog_option_repeated(arguments, "profile", k)); k++)
    PLANC_TRY(prog_used_files_read(files, profile));
  return NULL;
}

/* What a job has of an option that is given once for all jobs, or once for each. */
static const char *of_job(const prog_arguments *arguments, const char *option, int32_t job) {
  bool several = prog_option_repeated(arguments, option, 1) != NULL;
  return prog_option_repeated(arguments, option, several ? job : 0);
}

static const char *profile_of(const prog_arguments *arguments, int32_t job) {
  return of_job(arguments, "profile", job);
}

static planc_status read_own_settings(const prog_arguments *arguments, int32_t job, planc_workload *out) {
#define X(name, option, kind, least, most, standard, users, help) \
  PLANC_TRY(cli_setting_##kind(option, of_job(arguments, option, job), CLI_RANGE(name, least, most), &out->name));
  PLANC_EACH_SETTINGS(X)
#undef X
  return NULL;
}

/* An earlier job with the same graph and profile, or -1. */
static int32_t find_same(const prog_arguments *arguments, const cli_mix *mix, int32_t job) {
  const cli_mix_operand *own = &mix->operands[job];
  for (int32_t j = 0; j < job; j++) {
    const char *a = profile_of(arguments, j), *b = profile_of(arguments, job);
    bool same_profile = !a || strcmp(a, b) == 0;
    if (same_profile && strcmp(mix->operands[j].path, own->path) == 0 && mix->operands[j].inference == own->inference)
      return j;
  }
  return -1;
}

static planc_status find_optimizer(const prog_arguments *arguments, const cli_mix_operand *operand, const char **out);

/* A job's own graph, or that of an earlier one. */
static planc_status read_graph(const prog_arguments *arguments, cli_mix *mix, int32_t job) {
  const cli_mix_operand *operand = &mix->operands[job];
  int32_t same = find_same(arguments, mix, job);
  mix->jobs[job].graph = same >= 0 ? mix->jobs[same].graph : NULL;
  if (same >= 0) return NULL;
  char as_it_is[PATH_MAX + 64];
  const char *optimizer;
  PLANC_TRY(find_optimizer(arguments, operand, &optimizer));
  mix->takes_optimizer |= optimizer != NULL;
  (void)snprintf(as_it_is, sizeof as_it_is, "given as %s:%s it is planned as it is", arguments->operands[job],
                 inference);
  PLANC_TRY(cli_setup_graph(operand->path, optimizer, operand->inference, as_it_is, &mix->graphs[job]));
  mix->jobs[job].graph = mix->graphs[job];
  return NULL;
}

/* The one device of all jobs: that of --device, else the one that headers name, else the fall-back. */
static planc_status read_device(const prog_arguments *arguments, const cli_mix *mix, planc_profile **out) {
  int32_t named = 0; /* the first job whose header names one */
  while (named < mix->n - 1 && !mix->jobs[named].graph->device) named++;
  const planc_graph *graph = mix->jobs[named].graph;
  for (int32_t j = named + 1; j < mix->n && !prog_option_given(arguments, "device"); j++) {
    const planc_graph *other = mix->jobs[j].graph;
    if (other->device && strcmp(other->device, graph->device) != 0)
      return planc_error(PLANC_USAGE,
                         "the header of job %d (%s) names device %s, and that of job %d (%s) %s: jobs that share a GPU "
                         "have one device, say which with --device",
                         j, planc_mix_job_name(&mix->mix, j), other->device, named,
                         planc_mix_job_name(&mix->mix, named), graph->device);
  }
  return cli_setup_device_for(arguments, graph, out);
}

/* The profile of a job, measured for it or the description of the mix's device. */
static planc_status read_profile(const prog_arguments *arguments, cli_mix *mix, int32_t job) {
  planc_workload *own = &mix->jobs[job];
  const char *measured = profile_of(arguments, job);
  int32_t same = measured ? find_same(arguments, mix, job) : job > 0 ? 0 : -1;
  if (same >= 0) {
    own->profile = mix->jobs[same].profile;
    return NULL;
  }
  PLANC_TRY(measured ? cli_setup_measured(measured, own->graph, &mix->profiles[job])
                     : read_device(arguments, mix, &mix->profiles[job]));
  PLANC_TRY(cli_setup_instead(arguments, mix->profiles[job]));
  own->profile = mix->profiles[job];
  return NULL;
}

static planc_status read_job(const prog_arguments *arguments, const planc_workload *common, cli_mix *mix, int32_t job) {
  mix->jobs[job] = *common;
  PLANC_TRY(read_own_settings(arguments, job, &mix->jobs[job]));
  PLANC_TRY(read_graph(arguments, mix, job));
  mix->iterations[job] = mix->operands[job].iterations;
  mix->names[job] = mix->operands[job].name;
  char what[CLI_BATCH_TEXT];
  snprintf(what, sizeof what, "job %d: batch %lld", job, (long long)mix->operands[job].batch);
  return cli_setup_batch(mix->jobs[job].graph, what, mix->operands[job].batch, &mix->jobs[job].batch);
}

/* The optimizer that is asked for, for a graph that takes one: not one for inference, or with backward ops. */
static planc_status find_optimizer(const prog_arguments *arguments, const cli_mix_operand *operand, const char **out) {
  const char *asked = prog_option_value(arguments, "optimizer");
  planc_graph *graph;
  *out = NULL;
  if (operand->inference || !asked) return NULL;
  PLANC_TRY(planc_graph_read(operand->path, &graph));
  if (!planc_graph_has_backward(graph)) *out = asked;
  planc_graph_free(graph);
  return NULL;
}

static planc_status set_priority(const char *text, int32_t job, cli_mix *mix) {
  int64_t priority;
  PLANC_TRY(prog_option_int_of("priority", text, 0, PLANC_MAX_PRIORITY, &priority));
  mix->jobs[job].priority = (int32_t)priority;
  return NULL;
}

static planc_status set_weight(const char *text, int32_t job, cli_mix *mix) {
  int64_t weight;
  PLANC_TRY(prog_option_int_of("weight", text, 1, PLANC_MIX_MAX_WEIGHT, &weight));
  mix->weights[job] = (int32_t)weight;
  return NULL;
}

/* An option of the form JOB:N, once for a job. */
static planc_status read_of_jobs(const prog_arguments *arguments, const char *option,
                                 planc_status (*set)(const char *text, int32_t job, cli_mix *mix), cli_mix *mix) {
  const char *text, *value;
  bool told[PLANC_MIX_MAX_JOBS] = {false};
  for (int32_t k = 0; (text = prog_option_repeated(arguments, option, k)); k++) {
    int32_t job;
    PLANC_TRY(planc_context(cli_mix_read_job(text, mix, &job, &value), "--%s %s", option, text));
    if (job < 0) return planc_error(PLANC_USAGE, "--%s %s: say whose it is, as in 1:5", option, text);
    PLANC_TRY(set(value, job, mix));
    if (told[job]) return planc_error(PLANC_USAGE, "--%s %s: job %d has a %s already", option, text, job, option);
    told[job] = true;
  }
  return NULL;
}

static planc_status check_number(const prog_arguments *arguments, const char *option, const char *what) {
  int32_t n = prog_option_count(arguments, option);
  if (n <= 1 || n == arguments->n_operands) return NULL;
  return planc_error(PLANC_USAGE, "%d %s for %d jobs: one of all, or one of each", n, what, arguments->n_operands);
}

static planc_status check_profiles(const prog_arguments *arguments) {
  if (prog_option_given(arguments, "profile") && prog_option_given(arguments, "device"))
    return planc_error(PLANC_USAGE, "--profile and --device exclude each other");
  return check_number(arguments, "profile", "profiles");
}

/* What is asked of all jobs together, and of each. */
static planc_status read_common(const prog_arguments *arguments, planc_mix *out, planc_workload *out_job) {
  int64_t ratio;
  planc_terms *terms = &out->terms;
  *out_job = (planc_workload){.split_batch_norm = prog_option_given(arguments, "split-batch-norm")};
  *terms = (planc_terms){.gpus = 1, .budgets = {[PLANC_MEMORY_DEVICE] = -1, [PLANC_MEMORY_HOST] = -1}};
  PLANC_TRY(check_profiles(arguments));
#define X(name, option, ...) PLANC_TRY(check_number(arguments, option, "values of --" option));
  PLANC_EACH_SETTINGS(X)
#undef X
  PLANC_TRY(cli_setup_budgets(arguments, terms->budgets));
  PLANC_TRY(prog_option_int(arguments, "max-ratio", 1, PLANC_MIX_MAX_ITERATIONS, 0, &ratio));
  PLANC_TRY(cli_settings_read(arguments, &terms->settings));
#define X(name, ...) terms->settings.name = 0; /* read for each job */
  PLANC_EACH_SETTINGS(X)
#undef X
  out->max_ratio = (int32_t)ratio;
  return NULL;
}

/* A path that still has a colon is a file, unless what stands before the colon is one: then the rest are no fields. */
static planc_status check_fields(const char *operand, const char *path) {
  char before[PATH_MAX];
  const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path, *colon = strchr(name, ':');
  if (!colon || access(path, F_OK) == 0 || colon - path >= PATH_MAX) return NULL;
  (void)snprintf(before, sizeof before, "%.*s", (int)(colon - path), path);
  if (access(before, F_OK) != 0) return NULL;
  return planc_error(PLANC_USAGE, "%s is no job: behind %s may stand :BATCH or :BATCH:ITERATIONS, and behind that :%s",
                     operand, before, inference);
}

static planc_status read_operands(const prog_arguments *arguments, cli_mix *out) {
  if (arguments->n_operands > PLANC_MIX_MAX_JOBS)
    return planc_error(PLANC_USAGE, "%d jobs: a mix has at most %d", arguments->n_operands, (int)PLANC_MIX_MAX_JOBS);
  PLANC_TRY(cli_mix_allocate(arguments->n_operands, out));
  for (int32_t j = 0; j < out->n; j++) {
    PLANC_TRY(cli_mix_operand_parse(arguments->operands[j], &out->operands[j]));
    PLANC_TRY(check_fields(arguments->operands[j], out->operands[j].path));
  }
  return NULL;
}

static bool same_link(const planc_link *a, const planc_link *b) {
  return a->bytes_per_second == b->bytes_per_second && a->latency_ns == b->latency_ns;
}

/* But for what is reserved, of which the most counts, and what copies cost ops, of which the mean does. */
static bool same_device(const planc_device *a, const planc_device *b) {
  bool same = true;
  for (int r = 0; r < PLANC_N_ROUTES; r++) same &= same_link(&a->links[r], &b->links[r]);
  return same && a->launch_ns == b->launch_ns && a->in_flight == b->in_flight && a->duplex_ppm == b->duplex_ppm &&
         a->paging_ppm == b->paging_ppm;
}

void cli_mix_note_devices(const cli_mix *mix) {
  for (int32_t j = 1; j < mix->n; j++) {
    if (same_device(planc_profile_device(mix->jobs[0].profile), planc_profile_device(mix->jobs[j].profile))) continue;
    cli_note("the profile of job %d has other figures of the device (launch, links): those of job 0 count for all", j);
  }
}
