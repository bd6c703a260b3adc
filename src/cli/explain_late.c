/* What is said where a mix misses a deadline: with which iterations in a period it would not, or else which deadlines
 * it would meet; and where a job is slower than its least share: with which iterations, or policy, none would be.
 * Nothing is said that has not been planned. */
#include <string.h>

#include "cli/mix_setup.h"
#include "util/math.h"

/* A mix like the one that is late, but for some of what was asked. */
typedef struct other_mix {
  planc_mix mix;
  int32_t iterations[PLANC_MIX_MAX_JOBS];
  int64_t deadlines_ns[PLANC_MIX_MAX_JOBS];
  planc_mix_share shares[PLANC_MIX_MAX_JOBS];
} other_mix;

static planc_status explain_iterations(const planc_mix *mix, const planc_mix_policy *policy,
                                       const planc_mix_share *shares, const char *how, bool *out_told);
static planc_status explain_deadlines(const planc_mix *mix, const planc_mix_policy *policy,
                                      const planc_mix_share *shares);

static planc_status explain_shares(const planc_mix *mix, const planc_mix_policy *policy, const char *how);

static bool any_late(const planc_mix *mix, const planc_mix_share *shares);
static bool any_slow(const planc_mix *mix, const planc_mix_share *shares);

planc_status cli_explain_late(const planc_mix *mix, const planc_mix_policy *policy, const planc_mix_share *shares,
                              const char *how, planc_status status) {
  bool told = false;
  if (planc_status_code(status) != PLANC_LATE) return status;
  if (!any_late(mix, shares)) {
    if (any_slow(mix, shares)) planc_status_free(explain_shares(mix, policy, how));
    return status;
  }
  planc_status failed = explain_iterations(mix, policy, shares, how, &told);
  if (!failed && !told) failed = explain_deadlines(mix, policy, shares);
  planc_status_free(failed); /* what cannot be told is left out */
  return status;
}

static bool any_late(const planc_mix *mix, const planc_mix_share *shares) {
  for (int32_t j = 0; j < mix->n_jobs; j++)
    if (planc_mix_is_late(&shares[j])) return true;
  return false;
}

static bool any_slow(const planc_mix *mix, const planc_mix_share *shares) {
  for (int32_t j = 0; j < mix->n_jobs; j++)
    if (planc_mix_is_slow(&shares[j])) return true;
  return false;
}

/* --- Other mixes -------------------------------------------------------------------------------------------------- */

enum { LIST_TEXT = 2048 };

static void copy_mix(const planc_mix *mix, other_mix *out) {
  out->mix = *mix;
  memcpy(out->iterations, mix->iterations, (size_t)mix->n_jobs * sizeof *out->iterations);
  memcpy(out->deadlines_ns, mix->deadlines_ns, (size_t)mix->n_jobs * sizeof *out->deadlines_ns);
  out->mix.iterations = out->iterations;
  out->mix.deadlines_ns = out->deadlines_ns;
}

/* Takes being late, or not fitting, for an answer. */
static planc_status answer(planc_status status, bool *out) {
  planc_code code = planc_status_code(status);
  *out = !status;
  if (code != PLANC_LATE && code != PLANC_INFEASIBLE) return status;
  planc_status_free(status);
  return NULL;
}

static planc_status is_in_time(other_mix *o, const planc_mix_policy *policy, bool *out) {
  planc_plan *plan = NULL;
  planc_status status = planc_mix_resolve(&o->mix, o->shares);
  if (!status) status = planc_colocate(&o->mix, policy, o->shares, &plan);
  planc_plan_free(plan);
  return answer(status, out);
}

/* Whether it is with the iterations that it has at first: without more of them being tried, there is one plan to make.
 */
static planc_status is_in_time_at_once(const other_mix *o, const planc_mix_policy *policy, bool *out) {
  other_mix fixed;
  planc_plan *plan = NULL;
  copy_mix(&o->mix, &fixed);
  planc_status status = planc_mix_resolve(&fixed.mix, fixed.shares);
  for (int32_t j = 0; j < o->mix.n_jobs && !status; j++) fixed.iterations[j] = fixed.shares[j].iterations;
  if (!status) status = planc_colocate(&fixed.mix, policy, fixed.shares, &plan);
  planc_plan_free(plan);
  return answer(status, out);
}

/* What is to be asked for, for these iterations. */
static void list_iterations(const other_mix *o, char text[LIST_TEXT]) {
  size_t length = (size_t)snprintf(text, LIST_TEXT, "these iterations in a period, GRAPH:BATCH:ITERATIONS: ");
  for (int32_t j = 0; j < o->mix.n_jobs && length < LIST_TEXT; j++)
    length += (size_t)snprintf(text + length, LIST_TEXT - length, "%s%d of job %d (%s)", j == 0 ? "" : ", ",
                               o->shares[j].iterations, j, planc_mix_job_name(&o->mix, j));
}

/* --- More iterations ---------------------------------------------------------------------------------------------- */

static bool is_limited(const planc_mix *mix, const planc_mix_share *shares);
static planc_status try_limit(const planc_mix *mix, const planc_mix_policy *policy, const other_mix *found,
                              bool *out_told);
static void note_iterations(const other_mix *o, const char *how);

/* The others keep their iterations, the late ones have as many as they take. */
static planc_status explain_iterations(const planc_mix *mix, const planc_mix_policy *policy,
                                       const planc_mix_share *shares, const char *how, bool *out_told) {
  other_mix free_of_limits;
  bool in_time, limit_told;
  if (!is_limited(mix, shares)) return NULL;
  copy_mix(mix, &free_of_limits);
  free_of_limits.mix.max_ratio = PLANC_MIX_MAX_ITERATIONS;
  for (int32_t j = 0; j < mix->n_jobs; j++)
    free_of_limits.iterations[j] = planc_mix_is_late(&shares[j]) ? 0 : shares[j].iterations;
  PLANC_TRY(is_in_time(&free_of_limits, policy, &in_time));
  if (!in_time) return NULL;
  *out_told = true;
  PLANC_TRY(try_limit(mix, policy, &free_of_limits, &limit_told));
  if (!limit_told) note_iterations(&free_of_limits, how);
  return NULL;
}

/* Whether a late job has no more iterations for no other reason than that they were asked for. More of them are of no
 * use where two alone take too long. */
static bool is_limited(const planc_mix *mix, const planc_mix_share *shares) {
  for (int32_t j = 0; j < mix->n_jobs; j++)
    if (planc_mix_is_late(&shares[j]) && shares[j].deadline_ns / 2 < shares[j].alone_ns) return false;
  for (int32_t j = 0; j < mix->n_jobs; j++)
    if (planc_mix_is_late(&shares[j]) && (mix->iterations[j] > 0 || mix->max_ratio > 0)) return true;
  return false;
}

/* Where that alone is asked for, a larger limit; *out_told says whether it will do. */
static planc_status try_limit(const planc_mix *mix, const planc_mix_policy *policy, const other_mix *found,
                              bool *out_told) {
  other_mix limited;
  copy_mix(mix, &limited);
  *out_told = false;
  limited.mix.max_ratio = 0;
  for (int32_t j = 0; j < mix->n_jobs; j++) {
    if (found->deadlines_ns[j] == 0) continue;
    if (mix->iterations[j] > 0) return NULL;
    if (found->shares[j].iterations > limited.mix.max_ratio) limited.mix.max_ratio = found->shares[j].iterations;
  }
  PLANC_TRY(is_in_time(&limited, policy, out_told));
  if (*out_told) cli_note("all requests are in time with --max-ratio %d", limited.mix.max_ratio);
  return NULL;
}

static void note_iterations(const other_mix *o, const char *how) {
  char text[LIST_TEXT];
  list_iterations(o, text);
  cli_note("all requests are in time with %s%s", text, how);
}

/* --- Least shares ------------------------------------------------------------------------------------------------- */

/* With iterations that are left open, then with more of them, then by the fastest policy of all. */
static planc_status explain_shares(const planc_mix *mix, const planc_mix_policy *policy, const char *how) {
  enum { MORE = 4 };
  const planc_mix_policy *all = planc_mix_policy_find("auto");
  char text[LIST_TEXT];
  other_mix open, same;
  bool any_given = false, does = false;
  copy_mix(mix, &open);
  copy_mix(mix, &same);
  for (int32_t j = 0; j < mix->n_jobs; j++) {
    any_given = any_given || mix->iterations[j] > 0;
    open.iterations[j] = 0;
  }
  if (any_given) PLANC_TRY(is_in_time(&open, policy, &does));
  if (!does) {
    open.mix.max_ratio = (int32_t)pl_min((int64_t)MORE * planc_mix_most_chosen(mix), PLANC_MIX_MAX_ITERATIONS);
    PLANC_TRY(is_in_time(&open, policy, &does));
  }
  if (does) {
    list_iterations(&open, text);
    cli_note("each job has its share with %s%s", text, how);
    return NULL;
  }
  if (policy != all) PLANC_TRY(is_in_time(&same, all, &does));
  if (does)
    cli_note("each job has its share with --policy %s%s", all->name, how);
  else
    cli_note("with up to %d iterations of a job in a period, and by policy %s, a job is slower than its share as well",
             open.mix.max_ratio, all->name);
  return NULL;
}

/* --- Longer deadlines --------------------------------------------------------------------------------------------- */

/* MAX_TRIED: mixes tried, with a plan of each. Seven of them bisect the way to what requests took, to a 64th of it. */
enum { PARTS = 64, MAX_TRIED = 7, NS_OF_US = 1000, NUMBER_TEXT = 16 };

static planc_status find_shortest(const planc_mix *mix, const planc_mix_policy *policy, const planc_mix_share *shares,
                                  int64_t meets, other_mix *longer);
static void set_deadlines(const planc_mix *mix, const planc_mix_share *shares, int64_t parts, other_mix *out);
static void note_deadlines(const planc_mix_share *shares, const other_mix *o, bool with_iterations);
static const char *option_job(const planc_mix *mix, int32_t job, char number[NUMBER_TEXT]);

/* Begins with what the plan that is late would meet. Where the mix has other iterations for that, with which it is late
 * again, those of the plan are told too. */
static planc_status explain_deadlines(const planc_mix *mix, const planc_mix_policy *policy,
                                      const planc_mix_share *shares) {
  other_mix longer, same;
  bool meets;
  copy_mix(mix, &longer);
  set_deadlines(mix, shares, PARTS, &longer);
  PLANC_TRY(is_in_time(&longer, policy, &meets));
  if (meets) return find_shortest(mix, policy, shares, PARTS, &longer);
  copy_mix(&longer.mix, &same);
  for (int32_t j = 0; j < mix->n_jobs; j++) same.iterations[j] = shares[j].iterations;
  PLANC_TRY(is_in_time(&same, policy, &meets));
  if (!meets) return find_shortest(mix, policy, shares, 0, &longer);
  note_deadlines(shares, &same, true);
  return NULL;
}

/* Tries twice as much as what failed until it suffices, and then goes on by bisection between that and what fails. */
static planc_status find_shortest(const planc_mix *mix, const planc_mix_policy *policy, const planc_mix_share *shares,
                                  int64_t meets, other_mix *longer) {
  int64_t fails = meets > 0 ? 0 : PARTS;
  for (int32_t tried = 1; tried < MAX_TRIED && (meets == 0 || meets - fails > 1); tried++) {
    bool in_time;
    int64_t parts = meets > 0 ? fails + (meets - fails) / 2 : 2 * fails;
    set_deadlines(mix, shares, parts, longer);
    PLANC_TRY(is_in_time_at_once(longer, policy, &in_time));
    *(in_time ? &meets : &fails) = parts;
  }
  if (meets == 0) return NULL;
  set_deadlines(mix, shares, meets, longer);
  note_deadlines(shares, longer, false);
  return NULL;
}

/* Sets the deadlines of late jobs so many parts of the way to what their requests took, in whole microseconds. */
static void set_deadlines(const planc_mix *mix, const planc_mix_share *shares, int64_t parts, other_mix *out) {
  for (int32_t j = 0; j < mix->n_jobs; j++) {
    if (!planc_mix_is_late(&shares[j])) continue;
    int64_t more = pl_muldiv_ceil(shares[j].response_ns - shares[j].deadline_ns, parts, PARTS);
    out->deadlines_ns[j] = pl_align_up(pl_add_saturate(shares[j].deadline_ns, more), NS_OF_US);
  }
}

static void note_deadlines(const planc_mix_share *shares, const other_mix *o, bool with_iterations) {
  char deadlines[LIST_TEXT] = "", iterations[LIST_TEXT] = "", job[NUMBER_TEXT];
  size_t length = 0;
  for (int32_t j = 0; j < o->mix.n_jobs && length < sizeof deadlines; j++)
    if (planc_mix_is_late(&shares[j]))
      length += (size_t)snprintf(deadlines + length, sizeof deadlines - length, " --deadline %s:%lldus",
                                 option_job(&o->mix, j, job), (long long)(o->deadlines_ns[j] / NS_OF_US));
  if (with_iterations) list_iterations(o, iterations);
  cli_note("all requests are in time with%s%s%s", deadlines, with_iterations ? " and " : "",
           with_iterations ? iterations : ", the least as far as a few plans can tell");
}

/* A job as options name it. */
static const char *option_job(const planc_mix *mix, int32_t job, char number[NUMBER_TEXT]) {
  if (mix->names && mix->names[job]) return mix->names[job];
  snprintf(number, NUMBER_TEXT, "%d", job);
  return number;
}
