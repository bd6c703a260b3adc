/* `planc plan`: from a graph and a budget to a checked plan file. */
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"
#include "planc/check.h"
#include "util/file.h"
#include "util/print.h"
#include "util/size.h"
#include "util/vec.h"

static const char fallback_policy[] = "best";

typedef VEC(int64_t) int64_list;

static const char *without_folder(const char *path) {
  const char *base = strrchr(path, '/');
  return base ? base + 1 : path;
}

/* GRAPH with its folder and ending cut off and ".plan" put on. */
static planc_status default_output(const char *graph_path, char **out) {
  const char *base = without_folder(graph_path);
  const char *dot = strrchr(base, '.');
  size_t stem = dot && dot != base ? (size_t)(dot - base) : strlen(base);
  *out = malloc(stem + sizeof ".plan");
  if (!*out) return planc_error(PLANC_OUT_OF_MEMORY, "out of memory");
  memcpy(*out, base, stem);
  memcpy(*out + stem, ".plan", sizeof ".plan");
  return NULL;
}

/* --- What would do where nothing fits ----------------------------------------------------------------------------- */

/* A plan that does not fit, and why. */
typedef struct misfit {
  const planc_problem *problem;
  const planc_policy *policy;
  planc_status status;      /* of the problem; owned */
  planc_memory_kind memory; /* whose budget is too small */
  planc_problem at;         /* the problem in which that one is looked for */
  planc_status failed;      /* of `at`, owned; NULL: it is `status` */
} misfit;

/* What a policy has no room for on the host stays on the device: that its plan does not fit there is the host's matter
 * where one without limit would do. */
static planc_status find_memory(misfit *m) {
  planc_plan *plan;
  m->memory = planc_status_shortage(m->status).memory;
  m->at = *m->problem;
  if (m->memory != PLANC_MEMORY_DEVICE || m->problem->host_budget_bytes < 0) return NULL;
  m->at.host_budget_bytes = -1;
  m->at.storage_budget_bytes = 0;
  m->at.first_will_do = true;
  planc_status failed = planc_make_plan(&m->at, m->policy, &plan);
  if (planc_status_code(failed) == PLANC_INFEASIBLE) {
    m->failed = failed;
    return NULL;
  }
  PLANC_TRY(failed);
  planc_plan_free(plan);
  m->memory = PLANC_MEMORY_HOST;
  m->at = *m->problem;
  return NULL;
}

const char *cli_budget_name(planc_memory_kind memory) {
  static const char *const names[PLANC_N_MEMORY_KINDS] = {
      [PLANC_MEMORY_DEVICE] = "budget", [PLANC_MEMORY_HOST] = "host budget", [PLANC_MEMORY_STORAGE] = "storage"};
  return names[memory];
}

/* The device's least budget was looked for with a host without limit. */
static planc_status print_host(const misfit *m, const planc_least *least) {
  planc_problem at = *m->problem;
  int64_t bytes;
  char text[PL_SIZE_TEXT];
  at.budget_bytes = least->bytes;
  planc_status status = planc_find_host_beside(&at, m->policy, least->plan, &bytes);
  if (planc_status_code(status) == PLANC_INFEASIBLE) {
    planc_status_free(status);
    cli_note("it needs a larger host budget as well");
    return NULL;
  }
  PLANC_TRY(status);
  if (bytes != at.host_budget_bytes)
    cli_note("it needs a host budget of %lld bytes (%s) as well", (long long)bytes, pl_size_format(bytes, text));
  return NULL;
}

enum { ROUNDS_TEXT = 48 };

/* Says what the least budget is, what binds there and what is live. */
static planc_status print_least(const misfit *m, const planc_least *least) {
  char text[PL_SIZE_TEXT], rounds[ROUNDS_TEXT] = "";
  bool chosen = strcmp(m->policy->name, least->plan->policy) != 0;
  if (m->problem->sub_batch > 0)
    snprintf(rounds, sizeof rounds, " in rounds of %lld", (long long)m->problem->sub_batch);
  cli_note("the least feasible %s of %s is %lld bytes (%s)%s%s%s%s; there:", cli_budget_name(m->memory),
           m->policy->name, (long long)least->bytes, pl_size_format(least->bytes, text), rounds,
           chosen ? ", with policy " : "", chosen ? least->plan->policy : "",
           least->is_least ? "" : ", as far as a few plans can tell");
  PLANC_TRY(cli_print_peak(least->plan, m->memory, stderr));
  return m->memory == PLANC_MEMORY_DEVICE && m->problem->host_budget_bytes >= 0 ? print_host(m, least) : NULL;
}

/* Of a policy that chooses among others the reason is that of the one which is named with the least budget. */
static planc_status find_reason(misfit *m, const planc_least *least) {
  planc_plan *plan;
  if (!(m->policy->supports & PLANC_POLICY_CHOOSES)) return NULL;
  planc_status status = planc_make_plan(m->problem, planc_policy_find(least->plan->policy), &plan);
  if (planc_status_code(status) != PLANC_INFEASIBLE) {
    if (!status) planc_plan_free(plan);
    return status;
  }
  planc_status_free(m->status);
  m->status = status;
  return NULL;
}

static planc_status explain(misfit *m) {
  planc_least least;
  PLANC_TRY(find_memory(m));
  PLANC_TRY(planc_find_least(&m->at, m->policy, m->memory, m->failed ? m->failed : m->status, &least));
  planc_status status = find_reason(m, &least);
  if (!status) status = print_least(m, &least);
  planc_plan_free(least.plan);
  return status;
}

planc_status cli_explain(const planc_problem *problem, const planc_policy *policy, planc_status status) {
  if (planc_status_code(status) != PLANC_INFEASIBLE) return status;
  char budget[PL_SIZE_TEXT], text[PL_SIZE_TEXT];
  misfit m = {.problem = problem, .policy = policy, .status = status};
  planc_status_free(explain(&m)); /* what cannot be told is left out */
  planc_status_free(m.failed);
  status = m.status;
  pl_size_format(problem->budget_bytes, budget);
  if (m.memory == PLANC_MEMORY_STORAGE)
    return planc_context(status, "does not fit a storage of %s", pl_size_format(problem->storage_budget_bytes, text));
  if (m.memory == PLANC_MEMORY_DEVICE) return planc_context(status, "does not fit %s", budget);
  pl_size_format(problem->host_budget_bytes, text);
  if (planc_status_shortage(status).memory == PLANC_MEMORY_HOST)
    return planc_context(status, "does not fit a host budget of %s", text);
  return planc_context(status, "fits %s, but not with a host budget of %s", budget, text);
}

/* --- The plan ----------------------------------------------------------------------------------------------------- */

planc_status cli_summarize(const planc_plan *plan, const char *output, bool json) {
  const planc_predictions *p = &plan->predicted;
  const planc_job_predictions total = planc_plan_predicted_total(plan);
  int64_t budget = planc_plan_memory(plan, PLANC_MEMORY_DEVICE)->budget_bytes;
  if (json) {
    cJSON *object = cJSON_CreateObject();
    pl_json_add_string(object, "planc", "plan/1");
    pl_json_add_string(object, "graph", plan->name);
    pl_json_add_string(object, "policy", plan->policy);
    pl_json_add_string(object, "output", output);
    cli_report_work(plan, object);
    pl_json_add_int(object, "budget_bytes", budget);
    pl_json_add_int(object, "peak_bytes", p->peak_bytes[PLANC_MEMORY_DEVICE]);
    pl_json_add_int(object, "host_peak_bytes", p->peak_bytes[PLANC_MEMORY_HOST]);
    pl_json_add_int(object, "storage_peak_bytes", plan->predicted.peak_bytes[PLANC_MEMORY_STORAGE]);
    pl_json_add_int(object, "iteration_ns", p->iteration_ns);
    pl_json_add_int(object, "ideal_ns", total.ideal_ns);
    pl_json_add_int(object, "d2h_bytes", total.d2h_bytes);
    pl_json_add_int(object, "h2d_bytes", total.h2d_bytes);
    pl_json_add_int(object, "recompute_ns", total.recompute_ns);
    pl_json_add_int(object, "stall_ns", total.stall_ns);
    cli_report_jobs(plan, p->jobs, object);
    cli_report_explanation(plan->explanation, object);
    return pl_print_json(stdout, object);
  }
  char a[PL_SIZE_TEXT], b[PL_SIZE_TEXT], c[PL_SIZE_TEXT];
  pl_print_text(stdout, output);
  printf(": %s, ", plan->policy);
  cli_print_work(plan, true);
  printf("\n");
  printf("  peak      %s of %s, host %s", pl_size_format(p->peak_bytes[PLANC_MEMORY_DEVICE], a),
         pl_size_format(budget, b), pl_size_format(p->peak_bytes[PLANC_MEMORY_HOST], c));
  cli_print_storage(plan, ", ");
  printf("\n");
  printf("  iteration %s, ideal %s (%+.1f %%)\n", pl_time_format(p->iteration_ns, a), pl_time_format(total.ideal_ns, b),
         total.ideal_ns ? 100.0 * (double)(p->iteration_ns - total.ideal_ns) / (double)total.ideal_ns : 0.0);
  printf("  moved     %s out, %s in; recomputed %s\n", pl_size_format(total.d2h_bytes, a),
         pl_size_format(total.h2d_bytes, b), pl_time_format(total.recompute_ns, c));
  cli_print_jobs(plan, p->jobs);
  cli_print_explanation("  why       ", plan->explanation);
  return NULL;
}

/* Notes the sizes of rounds at which a profile that lists workspaces has none: the plan's are then guesses. */
static planc_status add_unlisted(const planc_plan *plan, const planc_trace *trace, const planc_profile *profile,
                                 int64_list *sizes) {
  for (int32_t i = 0; i < plan->body.n; i++) {
    const planc_instr *instr = &plan->body.instrs[i];
    if (instr->op != PLANC_INSTR_exec || instr->bytes == 0) continue;
    int64_t size = trace->instances[instr->id].batch, s = 0;
    const char *op = planc_trace_op(trace, instr->id)->name;
    if (planc_profile_lists_workspace(profile, op, plan->algorithms[instr->aux], size)) continue;
    while (s < sizes->len && sizes->data[s] != size) s++;
    if (s == sizes->len) VEC_PUSH(sizes, size);
  }
  return NULL;
}

static void note_unlisted(const int64_list *sizes) {
  enum { MOST = 4 };
  char text[128] = "";
  size_t length = 0;
  for (int64_t s = 0; s < sizes->len && s < MOST; s++)
    length +=
        (size_t)snprintf(text + length, sizeof text - length, "%s%lld", s == 0 ? "" : ", ", (long long)sizes->data[s]);
  if (sizes->len > 0)
    cli_note(
        "the profile lists no workspaces for rounds of %s%s: they are taken from others, and planrun refuses a "
        "plan with too little",
        text, sizes->len > MOST ? ", ..." : "");
}

planc_status cli_note_workspaces(const planc_plan *plan, const planc_profile *profile) {
  planc_trace *trace;
  int64_list sizes = {0};
  int32_t listed = 0;
  for (int32_t j = 0; j < plan->n_jobs && listed == 0; j++)
    (void)planc_profile_is_of(profile, plan->jobs[j].graph, &listed);
  if (listed == 0) return NULL; /* the constants of a device: they have workspaces for any size */
  PLANC_TRY(planc_expand(plan->jobs, plan->n_jobs, &trace));
  planc_status status = add_unlisted(plan, trace, profile, &sizes);
  if (!status) note_unlisted(&sizes);
  VEC_FREE(&sizes);
  planc_trace_free(trace);
  return status;
}

/* A plan that was made and does not pass is a defect, not an answer. */
static planc_status check_own(const planc_plan *plan) {
  planc_status failure = planc_check(plan, NULL, NULL);
  if (!failure || planc_status_code(failure) == PLANC_OUT_OF_MEMORY) return failure;
  planc_status defect =
      planc_error(PLANC_INTERNAL, "the plan that was made fails its check: %s", planc_status_message(failure));
  planc_status_free(failure);
  return defect;
}

planc_status cli_write_plan(const planc_plan *plan, const char *output) {
  char *text;
  size_t length;
  PLANC_TRY(check_own(plan));
  PLANC_TRY(planc_plan_print(plan, &text, &length));
  planc_status status = pl_file_write(output, text, length);
  free(text);
  return status;
}

static planc_status plan_graph(const pl_arguments *arguments, const cli_setup *setup, const char *output) {
  const char *name = pl_option_value(arguments, "policy"), *graph_policy = setup->problem.graph->policy;
  if (!name) {
    name = graph_policy ? graph_policy : fallback_policy;
    cli_note("policy %s (%s)", name, graph_policy ? "the graph's header" : "the fall-back");
  }
  const planc_policy *policy;
  PLANC_TRY(cli_setup_policy(name, PLANC_BAD_INPUT, &policy)); /* the graph's */
  PLANC_TRY(cli_setup_plans(policy));
  PLANC_TRY(cli_setup_own_options(arguments, policy, &setup->problem));
  planc_plan *plan;
  PLANC_TRY(cli_explain(&setup->problem, policy, planc_make_plan(&setup->problem, policy, &plan)));
  if (!pl_option_given(arguments, "output")) cli_note("output %s", output);
  planc_status status = cli_note_workspaces(plan, setup->profile);
  if (!status) status = cli_write_plan(plan, output);
  if (!status && strcmp(output, "-") != 0) status = cli_summarize(plan, output, pl_option_given(arguments, "json"));
  planc_plan_free(plan);
  return status;
}

/* Malloc'ed. */
static planc_status find_output(const pl_arguments *arguments, char **out) {
  const char *given = pl_option_value(arguments, "output");
  if (!given) return default_output(arguments->operands[0], out);
  *out = strdup(given);
  return *out ? NULL : planc_error(PLANC_OUT_OF_MEMORY, "out of memory");
}

static planc_status list_files(const pl_arguments *arguments, pl_used_files *files) {
  char *output;
  PLANC_TRY(pl_used_files_read(files, arguments->operands[0]));
  PLANC_TRY(pl_used_files_read(files, pl_option_value(arguments, "profile")));
  PLANC_TRY(find_output(arguments, &output));
  planc_status status = pl_used_files_write(files, output);
  const char *path = arguments->operands[0];
  bool named_so = status && !pl_option_given(arguments, "output") && strcmp(output, without_folder(path)) == 0;
  free(output);
  if (!named_so) return status;
  planc_status_free(status);
  return planc_error(PLANC_USAGE,
                     "%s has a plan's name: planc show, check, simulate and update take plans, and a "
                     "graph of that name needs --output",
                     path);
}

/* A policy that cannot be meant is told before anything is read. */
static planc_status check_policy(const pl_arguments *arguments) {
  const char *name = pl_option_value(arguments, "policy");
  const planc_policy *policy;
  if (!name) return NULL;
  PLANC_TRY(cli_setup_policy(name, PLANC_USAGE, &policy));
  return cli_setup_plans(policy);
}

static planc_status run(const pl_arguments *arguments) {
  cli_setup setup;
  char *output;
  PLANC_TRY(check_policy(arguments));
  PLANC_TRY(find_output(arguments, &output));
  planc_status status = cli_setup_read(arguments, arguments->operands[0], &setup);
  if (!status) status = plan_graph(arguments, &setup, output);
  cli_setup_free(&setup);
  free(output);
  return status;
}

static const pl_option options[] = {
    CLI_PROBLEM_OPTIONS{"policy", 0, "NAME", "how to plan (default: the graph's header, else best)"},
    {"output", 'o', "FILE", "the plan, - for standard output (default: GRAPH's name with .plan, here)"},
    {"json", 0, NULL, "the summary as one line of JSON"},
    {0},
};

const pl_subcommand cli_cmd_plan = {
    {"plan", "GRAPH", "make a plan for a graph under a memory budget", options, 1, 1}, run, list_files};
