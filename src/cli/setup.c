/* From command-line options and defaults to a planning problem. */
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"
#include "cost/routes.h"
#include "program/print.h"
#include "program/progress.h"
#include "util/locate.h"
#include "util/math.h"
#include "util/real.h"
#include "util/size.h"

enum { FALLBACK_BATCH = 32 };

static void message(const char *kind, const char *format, va_list arguments) {
  prog_progress_end(stderr);
  fprintf(stderr, "planc: %s: ", kind);
  prog_vprint_line(stderr, format, arguments);
}

void cli_note(const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  message("note", format, arguments);
  va_end(arguments);
}

static void warn_of(const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  message("warning", format, arguments);
  va_end(arguments);
}

planc_status cli_setup_share(const prog_arguments *arguments, const char *name, int32_t most, int64_t fallback_ppm,
                             int64_t *out_ppm) {
  const char *text = prog_option_value(arguments, name);
  *out_ppm = fallback_ppm;
  if (!text) return NULL;
  double share;
  if (!pl_real_parse(text, &share) || !(share >= 0.0 && share <= most))
    return planc_error(PLANC_USAGE, "--%s takes a fraction from 0 to %d", name, (int)most);
  *out_ppm = llround(share * PL_PPM);
  return NULL;
}

planc_status cli_setup_graph(const char *path, const char *optimizer, bool inference, const char *as_it_is,
                             planc_graph **out) {
  const char *derived;
  PLANC_TRY(planc_graph_prepare(path, optimizer, inference, out, &derived));
  if (derived) cli_note("%s has no backward ops: planned for training with %s (%s)", path, derived, as_it_is);
  return NULL;
}

planc_profile_of cli_note_graph(const char *path, const planc_profile *profile, const planc_graph *graph,
                                int32_t *out_listed) {
  planc_profile_of of = planc_profile_is_of(profile, graph, out_listed);
  if (of == PLANC_OF_ANOTHER)
    cli_note("%s was made for another graph: %d of %d ops are in it by name", path, (int)*out_listed,
             (int)graph->n_ops);
  return of;
}

planc_status cli_setup_measured(const char *path, const planc_graph *graph, planc_profile **out) {
  int32_t listed;
  PLANC_TRY(planc_profile_read(path, out));
  if (cli_note_graph(path, *out, graph, &listed) == PLANC_OF_UNKNOWN && listed == 0)
    cli_note("%s lists none of the graph's %d ops: their costs are predicted", path, (int)graph->n_ops);
  return NULL;
}

planc_status cli_setup_device(const prog_arguments *arguments, const char *name, planc_profile **out) {
  char path[4096];
  PLANC_TRY(pl_locate_device(name, path, sizeof path));
  PLANC_TRY(prog_used_files_read(arguments->files, path));
  return planc_profile_read(path, out);
}

planc_status cli_setup_device_for(const prog_arguments *arguments, const planc_graph *graph, planc_profile **out) {
  const char *device = prog_option_value(arguments, "device");
  if (!device) {
    device = graph->device ? graph->device : CLI_DEFAULT_DEVICE;
    cli_note("device %s (%s)", device, graph->device ? "the graph's header" : "the fall-back");
  }
  return cli_setup_device(arguments, device, out);
}

planc_status cli_setup_instead(const prog_arguments *arguments, planc_profile *profile) {
  int64_t ns, bytes;
  PLANC_TRY(prog_option_time(arguments, "launch", -1, &ns));
  if (ns >= 0)
    PLANC_TRY(
        planc_context(planc_profile_set_launch(profile, ns), "--launch %s", prog_option_value(arguments, "launch")));
  PLANC_TRY(prog_option_size(arguments, "reserved", -1, &bytes));
  if (bytes < 0) return NULL;
  return planc_context(planc_profile_set_reserved(profile, bytes), "--reserved %s",
                       prog_option_value(arguments, "reserved"));
}

void cli_note_reserved(const planc_device *device) {
  char text[PL_SIZE_TEXT];
  if (device->reserved_bytes > 0)
    cli_note("%s are reserved on device %s beside any plan; --reserved states another size",
             pl_size_format(device->reserved_bytes, text), device->name);
}

planc_status cli_each_name(const char *names, planc_status (*take)(void *user, const char *name), void *user) {
  char *copy = strdup(names), *save = NULL;
  if (!copy) return planc_error(PLANC_OUT_OF_MEMORY, "out of memory");
  planc_status status = NULL;
  for (char *name = strtok_r(copy, ",", &save); name && !status; name = strtok_r(NULL, ",", &save))
    status = take(user, name);
  free(copy);
  return status;
}

planc_status cli_setup_batch(const planc_graph *graph, const char *what, int64_t asked, int64_t *out) {
  bool has_samples = planc_graph_has_samples(graph);
  if (asked && !has_samples && asked != graph->batch) return cli_refuse_batch(graph, what);
  *out = asked ? asked : graph->batch ? graph->batch : has_samples ? FALLBACK_BATCH : 1;
  if (!asked && (has_samples || graph->batch))
    cli_note("batch %lld (%s)", (long long)*out, graph->batch ? "the graph's header" : "the fall-back");
  return NULL;
}

planc_status cli_refuse_batch(const planc_graph *graph, const char *what) {
  char its[CLI_BATCH_TEXT + 4] = "";
  if (graph->batch) snprintf(its, sizeof its, ", %lld", (long long)graph->batch);
  return planc_error(
      PLANC_USAGE,
      "%s: graph %s is of one batch size%s, as no size in it depends on N; planc torch --batches records a "
      "step at several, for a graph of all batches",
      what, graph->name, its);
}

bool cli_knows_batch(const planc_graph *graph, int64_t batch) {
  return batch > 1 || graph->batch || planc_graph_has_samples(graph);
}

const char *cli_batch_format(const planc_graph *graph, int64_t batch, char buffer[CLI_BATCH_TEXT]) {
  if (!cli_knows_batch(graph, batch)) return "its own batch";
  snprintf(buffer, CLI_BATCH_TEXT, "batch %lld", (long long)batch);
  return buffer;
}

void cli_report_batch(cJSON *object, const planc_graph *graph, int64_t batch) {
  pl_json_add_known(object, "batch", cli_knows_batch(graph, batch), batch);
}

static planc_status read_profile(const prog_arguments *arguments, const planc_graph *graph, planc_profile **out) {
  const char *measured = prog_option_value(arguments, "profile");
  PLANC_TRY(measured ? cli_setup_measured(measured, graph, out) : cli_setup_device_for(arguments, graph, out));
  return cli_setup_instead(arguments, *out);
}

/* How policies allocate that do so as they go. */
static planc_status read_placement(const prog_arguments *arguments, planc_problem *problem) {
  const char *placement = prog_option_value(arguments, "placement");
  if (placement && strcmp(placement, "vmm") == 0) {
    problem->terms.placement = PLANC_PLACEMENT_VMM;
  } else if (placement && strcmp(placement, "paged") == 0) {
    problem->terms.placement = PLANC_PLACEMENT_PAGED;
  } else if (placement && strcmp(placement, "best-fit") != 0) {
    return planc_error(PLANC_USAGE, "unknown placement %s: best-fit, paged or vmm", placement);
  }
  cli_range any = {.least = 1, .most = PLANC_MAX_BYTES};
  return cli_setting_bytes("chunk", prog_option_value(arguments, "chunk"), any, &problem->terms.chunk_bytes);
}

planc_status cli_setup_budgets(const prog_arguments *arguments, int64_t budgets[PLANC_N_BUDGETS]) {
  static const char *const options[PLANC_N_BUDGETS] = {
      [PLANC_MEMORY_DEVICE] = "budget", [PLANC_MEMORY_HOST] = "host-budget", [PLANC_MEMORY_STORAGE] = "storage"};
  for (int32_t m = 0; m < PLANC_N_BUDGETS; m++)
    PLANC_TRY(prog_option_size(arguments, options[m], budgets[m], &budgets[m]));
  return NULL;
}

planc_status cli_setup_policy_options(const prog_arguments *arguments, planc_problem *problem) {
  PLANC_TRY(read_placement(arguments, problem));
  planc_settings settings = planc_settings_asked(problem);
  PLANC_TRY(cli_settings_read(arguments, &settings));
  planc_ask_settings(problem, &settings);
  return NULL;
}

planc_status cli_setup_useful(const prog_arguments *arguments, const char *policy, uint32_t supports) {
  static const struct {
    const char *option;
    uint32_t users;
  } settings[] = {
#define X(name, option, kind, least, most, standard, users, help) {option, users},
      PLANC_SETTINGS(X)
#undef X
  };
  for (size_t i = 0; i < sizeof settings / sizeof *settings; i++) {
    bool used = settings[i].users == 0 || (supports & settings[i].users);
    if (used || !prog_option_given(arguments, settings[i].option)) continue;
    if (!policy) return planc_error(PLANC_USAGE, "none of the policies has a use for --%s", settings[i].option);
    return planc_error(PLANC_USAGE, "policy %s has no use for --%s", policy, settings[i].option);
  }
  return NULL;
}

planc_status cli_setup_own_options(const prog_arguments *arguments, const planc_policy *policy,
                                   const planc_problem *problem) {
  PLANC_TRY(cli_setup_useful(arguments, policy->name, policy->supports));
  if (!prog_option_given(arguments, "chunk") || problem->terms.placement != PLANC_PLACEMENT_BEST_FIT) return NULL;
  return planc_error(PLANC_USAGE, "--chunk is for --placement vmm and paged");
}

planc_status cli_setup_storage(const planc_problem *problem) {
  const planc_device *device = planc_profile_device(problem->job.profile);
  if (problem->terms.budgets[PLANC_MEMORY_STORAGE] == 0) return NULL;
  if (problem->terms.budgets[PLANC_MEMORY_HOST] < 0)
    return planc_error(PLANC_USAGE, "--storage takes what --host-budget has no room for: give that, too");
  if (pl_device_reaches(device, PLANC_MEMORY_STORAGE)) return NULL;
  return planc_error(PLANC_USAGE,
                     "the profile of device %s says nothing of storage: planrun profile --storage measures it",
                     device->name);
}

static planc_status read_lent_memory(int64_t *out, const char **out_name);
static planc_status read_options(const prog_arguments *arguments, planc_problem *problem);
static planc_status set_batch(planc_problem *problem);

/* All of the device, or what is lent of it. */
static planc_status take_default_budget(const planc_device *device, int64_t *out) {
  char text[PL_SIZE_TEXT], more[PL_SIZE_TEXT];
  const char *lent = NULL;
  int64_t lent_bytes = 0;
  *out = device->memory_bytes;
  PLANC_TRY(read_lent_memory(&lent_bytes, &lent));
  if (!lent) {
    cli_note("budget %s (device %s)", pl_size_format(*out, text), device->name);
  } else if (lent_bytes > *out) {
    cli_note("budget %s (device %s; %s allows %s)", pl_size_format(*out, text), device->name, lent,
             pl_size_format(lent_bytes, more));
  } else {
    *out = lent_bytes;
    cli_note("budget %s (%s)", pl_size_format(*out, text), lent);
  }
  return NULL;
}

planc_status cli_setup_budget(const planc_device *device, planc_terms *terms) {
  int64_t *budget = &terms->budgets[PLANC_MEMORY_DEVICE];
  char text[PL_SIZE_TEXT], memory[PL_SIZE_TEXT];
  if (*budget < 0) return take_default_budget(device, budget);
  if (*budget > device->memory_bytes) {
    warn_of("the budget of %s is beyond device %s with %s", pl_size_format(*budget, text), device->name,
            pl_size_format(device->memory_bytes, memory));
  }
  return NULL;
}

planc_status cli_setup_read(const prog_arguments *arguments, const char *graph_path, cli_setup *out) {
  PLANC_TRY(cli_setup_work(arguments, graph_path, out));
  return cli_setup_budget(planc_profile_device(out->problem.job.profile), &out->problem.terms);
}

planc_status cli_setup_work(const prog_arguments *arguments, const char *graph_path, cli_setup *out) {
  *out = (cli_setup){0};
  planc_problem *problem = &out->problem;
  bool inference = prog_option_given(arguments, "inference");
  PLANC_TRY(read_options(arguments, problem));
  PLANC_TRY(
      cli_setup_graph(graph_path, prog_option_value(arguments, "optimizer"), inference, CLI_AS_IT_IS, &out->graph));
  PLANC_TRY(read_profile(arguments, out->graph, &out->profile));
  problem->job.graph = out->graph;
  problem->job.profile = out->profile;
  PLANC_TRY(set_batch(problem));
  return cli_setup_storage(problem);
}

void cli_setup_free(cli_setup *setup) {
  planc_profile_free(setup->profile);
  planc_graph_free(setup->graph);
}

planc_status cli_setup_policy(const char *name, planc_code code, const planc_policy **out) {
  char known[512] = "";
  size_t length = 0;
  *out = planc_policy_find(name);
  if (!*out && planc_mix_policy_find(name))
    return planc_error(code, "policy %s is for several jobs: planc colocate plans them", name);
  for (const planc_policy *policy = planc_policies(); !*out && policy->name && length < sizeof known; policy++)
    length += (size_t)snprintf(known + length, sizeof known - length, "%s%s", length > 0 ? ", " : "", policy->name);
  return *out ? NULL : planc_error(code, "unknown policy %s: %s", name, known);
}

planc_status cli_setup_plans(const planc_policy *policy) {
  if (!(policy->supports & PLANC_POLICY_SIMULATED)) return NULL;
  return planc_error(PLANC_USAGE, "policy %s is only simulated and has no plan; see planc compare", policy->name);
}

/* What the command line alone says, of a batch or budget that it leaves open 0 or -1: what is wrong there is told
 * before the defaults are. */
static planc_status read_options(const prog_arguments *arguments, planc_problem *problem) {
  int64_t gpus;
  if (prog_option_given(arguments, "profile") && prog_option_given(arguments, "device"))
    return planc_error(PLANC_USAGE, "--profile and --device exclude each other");
  PLANC_TRY(prog_option_int(arguments, "batch", 1, INT32_MAX, 0, &problem->job.batch));
  PLANC_TRY(prog_option_int(arguments, "gpus", 1, PLANC_PLAN_MAX_REPLICAS, 1, &gpus));
  problem->terms.budgets[PLANC_MEMORY_DEVICE] = problem->terms.budgets[PLANC_MEMORY_HOST] = -1;
  PLANC_TRY(cli_setup_budgets(arguments, problem->terms.budgets));
  PLANC_TRY(prog_option_int(arguments, "sub-batch", 1, INT32_MAX, 0, &problem->job.sub_batch));
  problem->terms.gpus = (int32_t)gpus;
  problem->terms.shared_link = prog_option_given(arguments, "shared-link");
  if (problem->terms.shared_link && gpus == 1) return planc_error(PLANC_USAGE, "--shared-link is for several --gpus");
  problem->job.split_batch_norm = prog_option_given(arguments, "split-batch-norm");
  return cli_setup_policy_options(arguments, problem);
}

/* The batch becomes that of each GPU. */
static planc_status set_batch(planc_problem *problem) {
  PLANC_TRY(cli_setup_batch(problem->job.graph, "--batch", problem->job.batch, &problem->job.batch));
  if (!planc_graph_has_samples(problem->job.graph)) {
    bool splits = problem->job.sub_batch > 0 && problem->job.sub_batch != problem->job.batch;
    if (splits) return cli_refuse_batch(problem->job.graph, "--sub-batch");
    if (problem->terms.gpus > 1) return cli_refuse_batch(problem->job.graph, "--gpus");
  }
  if (problem->job.batch % problem->terms.gpus != 0)
    return planc_error(PLANC_USAGE, "a batch of %lld has no %d equal parts", (long long)problem->job.batch,
                       problem->terms.gpus);
  problem->job.batch /= problem->terms.gpus;
  if (problem->job.sub_batch <= problem->job.batch) return NULL;
  return planc_error(PLANC_USAGE, "--sub-batch %lld: not an integer from 1 to %lld, the batch%s",
                     (long long)problem->job.sub_batch, (long long)problem->job.batch,
                     problem->terms.gpus > 1 ? " of each GPU" : "");
}

static size_t length_without_blanks(const char *text, size_t length) {
  while (length > 0 && text[length - 1] == ' ') length--;
  return length;
}

/* The limit of device 0 in "0=1G,1=512M", as CUDA's MPS has it; malloc'ed, NULL where there is none. */
static planc_status find_pinned_limit(const char *text, char **out) {
  *out = NULL;
  for (text += strspn(text, " "); *text; text += strspn(text, " ")) {
    size_t length = strcspn(text, ","), digits = strspn(text, "0123456789");
    if (digits == 0 || text[digits] != '=')
      return planc_error(PLANC_USAGE, "\"%.*s\" is not a device's number and size, as 0=2G is", (int)length, text);
    if (!*out && strspn(text, "0") == digits) {
      *out = strndup(text + digits + 1, length_without_blanks(text, length) - digits - 1);
      if (!*out) return planc_error(PLANC_OUT_OF_MEMORY, "out of memory");
    }
    text += length + (text[length] == ',');
  }
  return NULL;
}

/* What whoever lends the GPU allows of its memory. *out_name stays as it is where nothing is said. */
static planc_status read_lent_memory(int64_t *out, const char **out_name) {
  const char *value = getenv("GPU_MEMORY_LIMIT"), *pinned_for = getenv("CUDA_MPS_PINNED_DEVICE_MEM_LIMIT");
  char *pinned = NULL;
  planc_status status = NULL;
  const char *name = "GPU_MEMORY_LIMIT";
  if (!value || !*value) {
    name = "CUDA_MPS_PINNED_DEVICE_MEM_LIMIT";
    if (pinned_for) status = find_pinned_limit(pinned_for, &pinned);
    value = pinned;
  }
  if (!status && value) status = pl_size_parse(value, out);
  if (!status && value) *out_name = name;
  free(pinned);
  return planc_context(status, "environment variable %s", name);
}
