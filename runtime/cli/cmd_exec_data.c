/* `planrun exec`: whose data there is (cmd_exec.h). Data of a job is given by its number in the plan that the run
 * begins with, or by name, which a job has that comes later as well. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "plan/job_name.h"
#include "runtime/cli/cmd_exec.h"

enum { MAX_JOB_DIGITS = 3 };

const char *run_execution_data_file(const char *value, run_data_key *out_key) {
  size_t digits = strspn(value, "0123456789"), length = pl_job_name_length(value);
  *out_key = (run_data_key){.row = -1};
  if (digits > 0 && digits <= MAX_JOB_DIGITS && value[digits] == ':') {
    out_key->row = (int32_t)strtol(value, NULL, 10);
    return value + digits + 1;
  }
  if (length == 0 || value[length] != ':') return value;
  *out_key = (run_data_key){.row = -1, .name = value, .length = length};
  return value + length + 1;
}

static planc_status add_data(run_execution *e, const char *value);
static planc_status feed_data(void *user, const planrt_feed_request *request);

planc_status run_execution_read_data(run_execution *e) {
  const char *value;
  if (!e->has_data) return NULL;
  for (int32_t i = 0; (value = prog_option_repeated(e->arguments, "data", i)) != NULL; i++)
    PLANC_TRY(add_data(e, value));
  e->options.feed = feed_data;
  return NULL;
}

/* --- Whose it is -------------------------------------------------------------------------------------------------- */

static bool is_called(const planc_job *job, const run_data_key *key) {
  const char *name = job->name ? job->name : job->graph->name;
  return key->name && strlen(name) == key->length && memcmp(name, key->name, key->length) == 0;
}

/* The job of a plan that a key names, -1 where none has the name. */
static planc_status find_named(const planc_plan *plan, const run_data_key *key, int32_t *out_row) {
  *out_row = -1;
  for (int32_t j = 0; j < plan->n_jobs; j++) {
    if (!is_called(&plan->jobs[j], key)) continue;
    if (*out_row >= 0)
      return planc_error(PLANC_USAGE, "--data: jobs %d and %d are both called %.*s: say whose data it is by number",
                         *out_row, j, (int)key->length, key->name);
    *out_row = j;
  }
  return NULL;
}

static planc_status find_row(const run_execution *e, run_execution_data *of) {
  const run_data_key *key = &of->whose;
  of->row = key->row >= 0 ? key->row : 0;
  if (key->name) PLANC_TRY(find_named(e->plan, key, &of->row));
  if (!key->name && key->row < 0 && e->plan->n_jobs > 1)
    return planc_error(PLANC_USAGE, "--data: %s has %d jobs: say whose data it is, --data 0:%s", e->path,
                       e->plan->n_jobs, of->path);
  if (of->row >= e->plan->n_jobs) return planc_error(PLANC_USAGE, "--data: %s has no job %d", e->path, of->row);
  if (of->row < 0 && !e->watch.path)
    return planc_error(PLANC_USAGE, "--data: %s has no job %.*s", e->path, (int)key->length, key->name);
  for (int64_t d = 0; d < e->data.len && of->row >= 0; d++)
    if (e->data.data[d].row == of->row) return planc_error(PLANC_USAGE, "--data: job %d has data already", of->row);
  return NULL;
}

/* --- Reading ------------------------------------------------------------------------------------------------------ */

static planc_status bind(const run_execution_data *of, const planc_plan *plan, int32_t row) {
  return planc_context(planrt_data_bind(of->data, row, &plan->jobs[row]), "%s", of->path);
}

static planc_status add_data(run_execution *e, const char *value) {
  run_execution_data of = {0};
  of.path = run_execution_data_file(value, &of.whose);
  PLANC_TRY(find_row(e, &of));
  VEC_PUSH(&e->data, of);
  run_execution_data *kept = &e->data.data[e->data.len - 1];
  PLANC_TRY(planrt_data_read(of.path, e->options.seed, &kept->data));
  e->options.evaluate |= planrt_data_held_out(kept->data) > 0;
  return of.row >= 0 ? bind(kept, e->plan, of.row) : NULL;
}

/* --- Handing it over ---------------------------------------------------------------------------------------------- */

static planc_status feed_data(void *user, const planrt_feed_request *request) {
  const run_execution *e = user;
  planrt_data *data = run_execution_of(e, request->job)->data;
  return data ? planrt_data_feed(data, request) : planrt_feed_random(e->session, request);
}

/* The job of a plan that waiting data is for, -1 where it has none. */
static planc_status find_waiting(const planc_plan *plan, const run_execution_data *of, int32_t *out_row) {
  *out_row = -1;
  return of->is_used || !of->whose.name ? NULL : find_named(plan, &of->whose, out_row);
}

/* Of the plan that the run begins with rows say whose it is, of a later one names do. */
static planc_status hand(run_execution *e, run_execution_data *of) {
  int32_t row = of->row;
  if (of->is_used) return NULL;
  if (row < 0) PLANC_TRY(find_waiting(e->plan, of, &row));
  if (row < 0) return NULL;
  run_execution_of(e, row)->data = of->data;
  of->is_used = true;
  return NULL;
}

planc_status run_execution_hand_data(run_execution *e) {
  for (int64_t d = 0; d < e->data.len; d++) PLANC_TRY(hand(e, &e->data.data[d]));
  for (int32_t j = 0; j < e->plan->n_jobs; j++) {
    planrt_data *data = run_execution_of(e, j)->data;
    if (data) PLANC_TRY(planrt_data_bind(data, j, &e->plan->jobs[j]));
  }
  return NULL;
}

planc_status run_execution_check_data(const run_execution *e, const planc_plan *next, const int32_t *numbers) {
  bool any = e->iterations != RUN_WHOLE_EPOCHS;
  for (int32_t j = 0; j < next->n_jobs; j++) any |= numbers[j] < e->jobs.len && e->jobs.data[numbers[j]].data != NULL;
  for (int64_t d = 0; d < e->data.len; d++) {
    int32_t row;
    PLANC_TRY(find_waiting(next, &e->data.data[d], &row));
    if (row < 0) continue;
    if (numbers[row] < e->jobs.len && e->jobs.data[numbers[row]].data)
      return planc_error(PLANC_USAGE, "job %d has data already, and would get %s", numbers[row], e->data.data[d].path);
    PLANC_TRY(bind(&e->data.data[d], next, row));
    any = true;
  }
  return any ? NULL : planc_error(PLANC_USAGE, "none of its jobs has --data, whose epochs the run counts");
}
