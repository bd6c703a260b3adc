/* What the commands that make a plan say of it and write: its summary, notes, the file. */
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"
#include "planc/check.h"
#include "program/print.h"
#include "util/file.h"
#include "util/vec.h"

typedef VEC(int64_t) int64_list;

static void print_ideal(const planc_plan *plan);
static void print_bound(const planc_predictions *predicted);

planc_status cli_summarize(const planc_plan *plan, const planc_mix_share *shares, const char *output, bool json) {
  if (json) return prog_print_json(stdout, cli_summary_json(plan, shares, output));
  cli_print_summary(plan, shares, output, true);
  return NULL;
}

void cli_print_summary(const planc_plan *plan, const planc_mix_share *shares, const char *output, bool has_ideal) {
  const planc_predictions *p = &plan->predicted;
  const planc_job_predictions total = planc_plan_predicted_total(plan);
  int64_t budget = planc_plan_memory(plan, PLANC_MEMORY_DEVICE)->budget_bytes;
  char a[PL_SIZE_TEXT], b[PL_SIZE_TEXT], c[PL_SIZE_TEXT];
  prog_print_text(stdout, output);
  printf(": %s, ", plan->policy);
  cli_print_work(plan, true);
  printf("\n");
  printf("  peak      %s of %s, host %s", pl_size_format(p->peak_bytes[PLANC_MEMORY_DEVICE], a),
         pl_size_format(budget, b), pl_size_format(p->peak_bytes[PLANC_MEMORY_HOST], c));
  cli_print_storage(plan, ", ");
  printf("\n");
  printf("  %-9s %s", cli_period_word(plan), pl_time_format(p->period_ns, a));
  if (has_ideal) print_ideal(plan);
  printf("\n");
  if (has_ideal && p->bound_ns > 0) print_bound(p);
  printf("  moved     ");
  cli_print_moved(&total);
  cli_print_jobs(plan, p->jobs, has_ideal);
  if (shares) cli_print_shares(plan, shares);
  cli_print_explanation("  why       ", plan->explanation);
}

static void print_ideal(const planc_plan *plan) {
  int64_t ideal_ns = planc_plan_predicted_total(plan).ideal_ns;
  double over = ideal_ns ? 100.0 * (double)(plan->predicted.period_ns - ideal_ns) / (double)ideal_ns : 0.0;
  char text[PL_SIZE_TEXT];
  printf(", %s %s (%+.1f %%)", plan->n_jobs > 1 ? "ideal one after the other" : "ideal", pl_time_format(ideal_ns, text),
         over);
}

static void print_bound(const planc_predictions *predicted) {
  char text[PL_SIZE_TEXT];
  double over = 100.0 * (double)(predicted->period_ns - predicted->bound_ns) / (double)predicted->bound_ns;
  printf("  bound     %s, than which no plan in this order and such rounds is faster (%+.1f %%)\n",
         pl_time_format(predicted->bound_ns, text), over);
}

cJSON *cli_summary_json(const planc_plan *plan, const planc_mix_share *shares, const char *output) {
  const planc_predictions *p = &plan->predicted;
  const planc_job_predictions total = planc_plan_predicted_total(plan);
  cJSON *object = cJSON_CreateObject();
  pl_json_add_string(object, "planc", shares ? "colocate/1" : "plan/1");
  pl_json_add_string(object, "graph", plan->name);
  pl_json_add_string(object, "policy", plan->policy);
  pl_json_add_string(object, "output", output);
  cli_report_work(plan, object);
  pl_json_add_int(object, "budget_bytes", planc_plan_memory(plan, PLANC_MEMORY_DEVICE)->budget_bytes);
  pl_json_add_int(object, "peak_bytes", p->peak_bytes[PLANC_MEMORY_DEVICE]);
  pl_json_add_int(object, "host_peak_bytes", p->peak_bytes[PLANC_MEMORY_HOST]);
  pl_json_add_int(object, "storage_peak_bytes", plan->predicted.peak_bytes[PLANC_MEMORY_STORAGE]);
  pl_json_add_int(object, shares ? "period_ns" : "iteration_ns", p->period_ns);
  pl_json_add_int(object, "ideal_ns", total.ideal_ns);
  if (!shares) pl_json_add_known(object, "bound_ns", p->bound_ns > 0, p->bound_ns);
  pl_json_add_int(object, "d2h_bytes", total.copied_bytes[PLANC_ROUTE_D2H]);
  pl_json_add_int(object, "h2d_bytes", total.copied_bytes[PLANC_ROUTE_H2D]);
  pl_json_add_int(object, "recompute_ns", total.recompute_ns);
  pl_json_add_int(object, "stall_ns", total.stall_ns);
  cli_report_jobs(plan, p->jobs, object);
  if (shares) cli_report_shares(plan, shares, object);
  cli_report_explanation(plan->explanation, object);
  return object;
}

/* Notes the sizes of rounds at which a profile that lists workspaces has none: the plan's are then guesses. */
static planc_status add_unlisted(const planc_plan *plan, const planc_trace *trace, int32_t job,
                                 const planc_profile *profile, int64_list *sizes) {
  for (int32_t i = 0; i < plan->body.n; i++) {
    const planc_instr *instr = &plan->body.instrs[i];
    if (instr->op != PLANC_INSTR_exec || instr->bytes == 0 || trace->instances[instr->id].job != job) continue;
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
        "plan with too little (planrun profile lists them of batches that --batches or --unmeasured names)",
        text, sizes->len > MOST ? ", ..." : "");
}

planc_status cli_note_workspaces(const planc_plan *plan, int32_t job, const planc_profile *profile) {
  planc_trace *trace;
  int64_list sizes = {0};
  int32_t listed = 0;
  (void)planc_profile_is_of(profile, plan->jobs[job].graph, &listed);
  if (listed == 0) return NULL; /* the constants of a device: they have workspaces for any size */
  PLANC_TRY(planc_expand(plan->jobs, plan->n_jobs, &trace));
  planc_status status = add_unlisted(plan, trace, job, profile, &sizes);
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
  PLANC_TRY(cli_print_plan(plan, &text, &length));
  planc_status status = pl_file_write(output, text, length);
  free(text);
  return status;
}

planc_status cli_print_plan(const planc_plan *plan, char **text, size_t *length) {
  PLANC_TRY(check_own(plan));
  return planc_plan_print(plan, text, length);
}
