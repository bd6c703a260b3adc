/* `planrun exec`: whose data there is (cmd_exec.h). Data of a job is given by its number in the plan that the run
 * begins with, or by name, which a job has that comes later as well. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/cli/cmd_exec.h"

const char *run_execution_data_file(const char *value, run_job_key *out_key) {
  size_t length = run_job_key_read(value, out_key);
  if (length > 0 && value[length] == ':') return value + length + 1;
  *out_key = (run_job_key){.row = -1};
  return value;
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

static planc_status find_row(const run_execution *e, run_execution_data *of) {
  const run_job_key *key = &of->whose;
  bool says = key->name || key->row >= 0;
  of->row = 0;
  if (!says && e->plan->n_jobs > 1)
    return planc_error(PLANC_USAGE, "--data: %s has %d jobs: say whose data it is, --data 0:%s", e->path,
                       e->plan->n_jobs, of->path);
  if (says) PLANC_TRY(run_job_key_find(e->plan, "data", key, &of->row));
  if (of->row < 0 && !key->name) return planc_error(PLANC_USAGE, "--data: %s has no job %d", e->path, key->row);
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
  return of->is_used || !of->whose.name ? NULL : run_job_key_find(plan, "data", &of->whose, out_row);
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

planc_status run_execution_give_data(run_execution *e) {
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
