#include "tests/support/runs.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/randgraph.h"
#include "tests/support/unit.h"

planc_status feed_numbers(void *user, const planrt_feed_request *request) {
  (void)user;
  uint64_t seed = (uint64_t)(request->iteration * 1000 + request->offset);
  if (request->bytes == request->count * (int64_t)sizeof(int64_t)) {
    for (int64_t i = 0; i < request->count; i++) ((int64_t *)request->out)[i] = rand_below(&seed, 3);
  } else {
    for (int64_t i = 0; i < request->bytes / (int64_t)sizeof(float); i++)
      ((float *)request->out)[i] = (float)rand_below(&seed, 1000) / 1000.0F;
  }
  return NULL;
}

static planc_status feed(void *user, const planrt_feed_request *request) {
  (void)user;
  uint64_t seed = (uint64_t)(request->iteration * 1000 + request->offset);
  for (int64_t i = 0; i < request->bytes; i++) ((unsigned char *)request->out)[i] = (unsigned char)rand_next(&seed);
  return NULL;
}

void run_periods(const planc_plan *plan, way how, uint64_t seed, int64_t periods, planrt_session **out) {
  planrt_options options = {.seed = 5, .feed = feed, .synthetic = true, .verify = true, .poison = true};
  options.concurrent = how == CONCURRENT;
  options.jitter = how == CONCURRENT ? seed + 1 : 0;
  ok(planrt_session_new(plan, &options, out));
  ok(planrt_init(*out));
  ok(how == INTERLEAVED ? planrt_run_interleaved(*out, periods, seed) : planrt_run(*out, periods));
}

void assert_first_job_same(const planrt_session *a, const planrt_session *b, const planc_graph *graph, int64_t batch,
                           const char *what) {
  for (int32_t s = 0; s < graph->n_storages; s++) {
    int64_t bytes = planc_law_at(graph->storages[s].bytes, batch);
    if (!planc_kind_persists(graph->storages[s].kind) || bytes == 0) continue;
    char *of_a = malloc((size_t)bytes), *of_b = malloc((size_t)bytes);
    planc_status status = planrt_read(a, 0, 0, s, of_a, bytes);
    if (!status) {
      ok_in(planrt_read(b, 0, 0, s, of_b, bytes), what);
      ck_assert_msg(memcmp(of_a, of_b, (size_t)bytes) == 0, "%s: storage %d differs", what, s);
    }
    planc_status_free(status); /* nothing touches it */
    free(of_a);
    free(of_b);
  }
}
