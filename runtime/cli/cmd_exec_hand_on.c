/* `planrun exec --hand-on`: at the ends of periods a job that only infers takes over what another one trains, as a
 * sampler does in reinforcement learning (cmd_exec.h). Values are at home in the user's memory then: so every such end
 * is an epilogue and a prologue. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/cli/cmd_exec.h"
#include "util/map.h"
#include "util/math.h"

static planc_status add(run_execution *e, const char *value);
static bool is_due(const run_execution *e, const run_hand_on *h);
static planc_status hand_on(run_execution *e, const run_hand_on *h);
static int64_t done_by(const run_execution *e, const run_hand_on *h);

planc_status run_execution_read_hand_ons(run_execution *e) {
  const char *value;
  if (!prog_option_given(e->arguments, "hand-on")) return NULL;
  for (int32_t i = 0; (value = prog_option_repeated(e->arguments, "hand-on", i)) != NULL; i++) PLANC_TRY(add(e, value));
  return NULL;
}

/* Jobs that go on from a checkpoint have handed on what was due before, but not to a job that begins now. */
planc_status run_execution_begin_hand_on(run_execution *e) {
  for (int64_t k = 0; k < e->hand_ons.len; k++) {
    run_hand_on *h = &e->hand_ons.data[k];
    h->done = done_by(e, h);
    if (h->done == 0 || run_execution_job_at(e, h->to).iterations == 0) PLANC_TRY(hand_on(e, h));
  }
  return NULL;
}

planc_status run_execution_hand_on(run_execution *e) {
  for (int64_t k = 0; k < e->hand_ons.len; k++) {
    run_hand_on *h = &e->hand_ons.data[k];
    if (is_due(e, h)) PLANC_TRY(hand_on(e, h));
    h->done = done_by(e, h);
  }
  return NULL;
}

void run_execution_free_hand_ons(run_execution *e) {
  for (int64_t k = 0; k < e->hand_ons.len; k++) {
    free(e->hand_ons.data[k].room);
    VEC_FREE(&e->hand_ons.data[k].values);
  }
  VEC_FREE(&e->hand_ons);
}

/* --- When --------------------------------------------------------------------------------------------------------- */

static int64_t done_by(const run_execution *e, const run_hand_on *h) {
  return run_execution_job_at(e, h->from).iterations;
}

/* At the first end of a period behind every so many iterations: that follows from how many are done, so that a run in
 * parts hands on where a run in one does. */
static bool is_due(const run_execution *e, const run_hand_on *h) {
  return h->every == 0 || done_by(e, h) / h->every > h->done / h->every;
}

/* What a job has that failed is not handed on, and one that failed takes nothing. */
static bool has_failed(const run_execution *e, const run_hand_on *h) {
  planrt_failure failure;
  return planrt_failed(e->session, h->from, &failure) || planrt_failed(e->session, h->to, &failure);
}

int64_t run_execution_periods_to_hand_on(const run_execution *e) {
  int64_t fewest = INT64_MAX;
  for (int64_t k = 0; k < e->hand_ons.len; k++) {
    const run_hand_on *h = &e->hand_ons.data[k];
    int64_t period = e->plan->jobs[h->from].iterations;
    int64_t left = h->every > 0 ? h->every - done_by(e, h) % h->every : 1;
    if (!has_failed(e, h)) fewest = pl_min(fewest, left / period + (left % period != 0));
  }
  return fewest;
}

static planc_status hand_on(run_execution *e, const run_hand_on *h) {
  planc_status status = NULL;
  if (has_failed(e, h)) return NULL;
  for (int64_t v = 0; v < h->values.len && !status; v++) {
    const run_handed_value *of = &h->values.data[v];
    status = planrt_read(e->session, 0, h->from, of->from, h->room, of->bytes);
    if (!status) status = planrt_write(e->session, 0, h->to, of->to, h->room, of->bytes);
  }
  if (!status) e->handed_on++;
  return planc_context(status, "--hand-on");
}

/* --- From whom to whom -------------------------------------------------------------------------------------------- */

static planc_status check_form(const char *value);
static planc_status take_job(const run_execution *e, const char *value, const char **rest, int32_t *out);
static planc_status check_jobs(const run_execution *e, const run_hand_on *h);
static planc_status list_values(const run_execution *e, run_hand_on *h);
static planc_status make_room(run_hand_on *h);

static planc_status add(run_execution *e, const char *value) {
  run_hand_on h = {0};
  const char *rest = value;
  PLANC_TRY(check_form(value));
  PLANC_TRY(take_job(e, value, &rest, &h.from));
  rest++;
  PLANC_TRY(take_job(e, value, &rest, &h.to));
  if (*rest == ':') PLANC_TRY(prog_option_int_of("hand-on", rest + 1, 1, INT64_C(1) << 40, &h.every));
  PLANC_TRY(check_jobs(e, &h));
  VEC_PUSH(&e->hand_ons, h);
  run_hand_on *added = &e->hand_ons.data[e->hand_ons.len - 1];
  PLANC_TRY(list_values(e, added));
  return make_room(added);
}

/* FROM:TO, or FROM:TO:N, each of which says something. */
static planc_status check_form(const char *value) {
  enum { LEAST_COLONS = 1, MOST_COLONS = 2 };
  size_t length = strlen(value);
  int32_t colons = 0;
  for (const char *c = value; *c; c++) colons += *c == ':';
  bool is_empty = length == 0 || value[0] == ':' || value[length - 1] == ':' || strstr(value, "::");
  if (!is_empty && colons >= LEAST_COLONS && colons <= MOST_COLONS) return NULL;
  return planc_error(PLANC_USAGE, "--hand-on \"%s\": two jobs are named, FROM:TO or FROM:TO:N", value);
}

/* Takes a job off the text. */
static planc_status take_job(const run_execution *e, const char *value, const char **rest, int32_t *out) {
  run_job_key key;
  size_t length = strcspn(*rest, ":");
  *out = -1;
  if (run_job_key_read(*rest, &key) == length) PLANC_TRY(run_job_key_find(e->plan, "hand-on", &key, out));
  if (*out < 0)
    return planc_error(PLANC_USAGE, "--hand-on: %s: %s has no job %.*s", value, e->path, (int)length, *rest);
  *rest += length;
  return NULL;
}

static planc_status check_jobs(const run_execution *e, const run_hand_on *h) {
  if (h->from == h->to) return planc_error(PLANC_USAGE, "--hand-on: job %d has its own parameters", h->to);
  if (planc_graph_has_backward(e->plan->jobs[h->to].graph))
    return planc_error(PLANC_USAGE,
                       "--hand-on: job %d trains its parameters itself: only a job for inference takes others'", h->to);
  if (!planc_graph_has_backward(e->plan->jobs[h->from].graph))
    return planc_error(PLANC_USAGE,
                       "--hand-on: job %d is for inference: parameters are handed on from the job that trains them",
                       h->from);
  for (int64_t k = 0; k < e->hand_ons.len; k++)
    if (e->hand_ons.data[k].to == h->to)
      return planc_error(PLANC_USAGE, "--hand-on: job %d is handed parameters twice", h->to);
  return NULL;
}

static planc_status list_by_names(const run_execution *e, run_hand_on *h, pl_map *names);
static planc_status add_value(const run_execution *e, run_hand_on *h, int32_t from, const planc_tensor *tensor);

/* All that lasts of the job that takes: its parameters, and statistics of norms. */
static planc_status list_values(const run_execution *e, run_hand_on *h) {
  pl_map names = {0};
  planc_status status = list_by_names(e, h, &names);
  pl_map_free(&names);
  return status;
}

static planc_status make_room(run_hand_on *h) {
  int64_t most = 1;
  for (int64_t v = 0; v < h->values.len; v++) most = pl_max(most, h->values.data[v].bytes);
  h->room = malloc((size_t)most);
  return h->room ? NULL : planc_error(PLANC_OUT_OF_MEMORY, "out of memory");
}

static bool lasts(const planc_graph *graph, int32_t storage) {
  planc_kind kind = graph->storages[storage].kind;
  return kind == PLANC_KIND_param || kind == PLANC_KIND_state;
}

static planc_status list_by_names(const run_execution *e, run_hand_on *h, pl_map *names) {
  const planc_graph *from = e->plan->jobs[h->from].graph, *to = e->plan->jobs[h->to].graph;
  for (int32_t t = 0; t < from->n_tensors; t++)
    PLANC_TRY(pl_map_put(names, from->tensors[t].name, strlen(from->tensors[t].name), t));
  for (int32_t s = 0; s < to->n_storages; s++) {
    const planc_tensor *tensor = &to->tensors[to->storages[s].tensor];
    if (!lasts(to, s)) continue;
    int32_t found = pl_map_get(names, tensor->name, strlen(tensor->name));
    if (found < 0 || !lasts(from, from->tensors[found].storage))
      return planc_error(PLANC_USAGE, "--hand-on: job %d has no %s, which job %d is to take over", h->from,
                         tensor->name, h->to);
    PLANC_TRY(add_value(e, h, from->tensors[found].storage, tensor));
  }
  return NULL;
}

static bool is_alike(const planc_job *giver, int32_t tensor, const planc_job *taker, const planc_tensor *taken) {
  const planc_tensor *given = &giver->graph->tensors[tensor];
  bool alike = given->dtype == taken->dtype && given->rank == taken->rank;
  for (int32_t d = 0; alike && d < given->rank; d++)
    alike = planc_law_at(given->dims[d], giver->batch) == planc_law_at(taken->dims[d], taker->batch);
  return alike;
}

static planc_status add_value(const run_execution *e, run_hand_on *h, int32_t from, const planc_tensor *tensor) {
  const planc_job *giver = &e->plan->jobs[h->from], *taker = &e->plan->jobs[h->to];
  int64_t given = planc_law_at(giver->graph->storages[from].bytes, giver->batch);
  int64_t bytes = planc_law_at(taker->graph->storages[tensor->storage].bytes, taker->batch);
  if (given == bytes && !is_alike(giver, giver->graph->storages[from].tensor, taker, tensor))
    return planc_error(PLANC_USAGE, "--hand-on: %s has another type or other dimensions in job %d than in job %d",
                       tensor->name, h->from, h->to);
  if (given != bytes)
    return planc_error(PLANC_USAGE, "--hand-on: %s has %lld bytes in job %d, and %lld in job %d", tensor->name,
                       (long long)given, h->from, (long long)bytes, h->to);
  VEC_PUSH(&h->values, ((run_handed_value){from, tensor->storage, bytes}));
  return NULL;
}
