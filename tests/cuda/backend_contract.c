/* What a backend promises (runtime/backend.h) where something goes wrong, or where the user is slow.
 *
 * usage: backend_contract BACKEND copying | dropping | losing | feeding PLAN | replaying PLAN
 *
 * copying    within host memory: in stream order, and nobody who enqueues it is held up
 * dropping   host work fails: what was behind it, and what comes later, is dropped, and the device goes on after that
 * losing     the device is lost with more host work enqueued than it holds: nothing waits for ever
 * feeding    samples that come no sooner than a result that is copied out behind another one
 * replaying  a feed that fails in a captured body, and the run after that */
#define _DEFAULT_SOURCE /* syscall */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "runtime/session.h"

enum { BYTES = 4096, MOST_WAITS = 60000 };

static atomic_int counted;
static atomic_bool released;

static void pause_for(long nanoseconds) {
  const struct timespec moment = {.tv_nsec = nanoseconds};
  nanosleep(&moment, NULL);
}

/* In place of libc's: whoever asks for the wall clock's time, to wait until a while later, finds it set back by a day
 * when he waits. */
int clock_gettime(clockid_t clock, struct timespec *out) {
  enum { DAY = 86400 };
  long result = syscall(SYS_clock_gettime, clock, out);
  if (clock == CLOCK_REALTIME) out->tv_sec += DAY;
  return (int)result;
}

static planc_status wrong(const char *what) {
  return planc_error(PLANC_INTERNAL, "%s", what);
}

/* --- Host work ---------------------------------------------------------------------------------------------------- */

static planc_status count(void *user, const void *what, int64_t period) {
  (void)user, (void)what, (void)period;
  counted++;
  return NULL;
}

/* Ends when it is released, or so late that whoever has waited for it sees that. */
static planc_status hold(void *user, const void *what, int64_t period) {
  (void)user, (void)what, (void)period;
  for (int waits = 0; !released && waits < MOST_WAITS; waits++) pause_for(1000000);
  return NULL;
}

static planc_status fail(void *user, const void *what, int64_t period) {
  PLANC_TRY(hold(user, what, period));
  return planc_error(PLANC_BAD_INPUT, "failure %lld", (long long)period);
}

static planc_status read_first(const planrt_backend *backend, rt_device *device, char *out) {
  PLANC_TRY(backend->copy(device, 0, RT_D2H, backend->host_arena(device), backend->arena(device), BYTES, NULL));
  PLANC_TRY(backend->synchronize(device));
  *out = *backend->host_arena(device);
  return NULL;
}

/* --- Copying ------------------------------------------------------------------------------------------------------ */

/* Behind host work that is not over, and before another stream's copy of what comes there, which then is poisoned. */
static planc_status enqueue_copies(const planrt_backend *backend, rt_device *device, char *to, const char *from,
                                   rt_span *span) {
  PLANC_TRY(backend->host(device, 0, hold, NULL, NULL, 0));
  PLANC_TRY(backend->copy(device, 0, RT_H2H, to, from, BYTES, span));
  PLANC_TRY(backend->record(device, 0, 0, 0));
  PLANC_TRY(backend->wait(device, 1, 0, 0));
  PLANC_TRY(backend->copy(device, 1, RT_H2D, backend->arena(device), to, BYTES, NULL));
  return backend->poison(device, 1, to, BYTES);
}

static planc_status check_copying(const planrt_backend *backend, rt_device *device) {
  char *from = backend->host_arena(device), *to = from + BYTES, poison[BYTES], value;
  rt_span span = {0};
  memset(from, 1, BYTES);
  memset(to, 2, BYTES);
  memset(poison, 0xff, BYTES);
  planc_status status = enqueue_copies(backend, device, to, from, &span);
  bool in_order = *to == 2;
  released = true;
  PLANC_TRY(status);
  if (!in_order) return wrong("a copy within host memory is not left to its stream");
  PLANC_TRY(backend->synchronize(device));
  if (memcmp(to, poison, BYTES) != 0) return wrong("host memory is not poisoned");
  if (span.start_ns <= 0 || span.end_ns < span.start_ns) return wrong("a copy within host memory is not timed");
  PLANC_TRY(read_first(backend, device, &value));
  return value == 1 ? NULL : wrong("a copy within host memory is not waited for");
}

/* --- Dropping ----------------------------------------------------------------------------------------------------- */

/* Two host works fail, one behind the other; more is behind them. */
static planc_status enqueue_failures(const planrt_backend *backend, rt_device *device) {
  PLANC_TRY(backend->host(device, 0, fail, NULL, NULL, 1));
  PLANC_TRY(backend->host(device, 0, fail, NULL, NULL, 2));
  PLANC_TRY(backend->host(device, 0, count, NULL, NULL, 0));
  PLANC_TRY(backend->record(device, 0, 0, 0));
  PLANC_TRY(backend->wait(device, 1, 0, 0));
  return backend->host(device, 1, count, NULL, NULL, 0);
}

static planc_status check_failure(const planrt_backend *backend, rt_device *device) {
  planc_status status = backend->synchronize(device);
  bool first = status && strcmp(planc_status_message(status), "failure 1") == 0;
  planc_status_free(status);
  if (!first) return wrong("synchronize does not give the first failure");
  PLANC_TRY(backend->synchronize(device));
  return counted == 0 ? NULL : wrong("host work behind a failure has been done");
}

/* Until a failure is noticed: what is recorded from then on is dropped. A backend that records in stream order has not
 * come to it before. */
static planc_status await_failure(const planrt_backend *backend, rt_device *device) {
  for (int64_t generation = 1; generation < MOST_WAITS; generation++) {
    PLANC_TRY(backend->record(device, 0, 1, generation));
    if (!backend->reached(device, 1, generation)) return NULL;
    pause_for(1000000);
  }
  return wrong("a failure is not noticed");
}

static planc_status check_dropping(const planrt_backend *backend, rt_device *device) {
  char *source = backend->host_arena(device) + BYTES, value;
  PLANC_TRY(enqueue_failures(backend, device));
  released = true;
  PLANC_TRY(await_failure(backend, device));
  memset(source, 2, BYTES);
  PLANC_TRY(backend->copy(device, 0, RT_H2D, backend->arena(device), source, BYTES, NULL));
  PLANC_TRY(check_failure(backend, device));
  memset(backend->host_arena(device), 7, BYTES);
  PLANC_TRY(read_first(backend, device, &value));
  if (value == 2) return wrong("what came after the failure has been done");
  /* As new. */
  backend->forget(device);
  memset(source, 3, BYTES);
  PLANC_TRY(backend->host(device, 0, count, NULL, NULL, 0));
  PLANC_TRY(backend->copy(device, 0, RT_H2D, backend->arena(device), source, BYTES, NULL));
  PLANC_TRY(read_first(backend, device, &value));
  return value == 3 && counted == 1 ? NULL : wrong("the device does not go on after a failure");
}

/* --- Losing the device -------------------------------------------------------------------------------------------- */

/* As much host work as the device holds is behind some that runs when the kernel of a digest ends the context. */
static planc_status check_losing(const planrt_backend *backend, rt_device *device) {
  enum { HELD = 1024, MORE = 5000 };
  uint64_t digest;
  rt_operand operand = {.data = backend->arena(device), .bytes = BYTES};
  rt_call call = {.n_out = 1, .out = &operand};
  planc_status status = NULL;
  PLANC_TRY(backend->host(device, 0, hold, NULL, NULL, 0));
  for (int i = 1; i < HELD; i++) PLANC_TRY(backend->host(device, 0, count, NULL, NULL, 0));
  planc_status_free(backend->digest(device, 1, &call, &digest));
  for (int i = 0; !status && i < MORE; i++) status = backend->host(device, 0, count, NULL, NULL, 0);
  bool lost = planc_status_code(status) == PLANC_DEVICE;
  planc_status_free(status);
  if (!lost) return wrong("host work is still taken");
  for (int i = 0; i < 2; i++) {
    status = backend->synchronize(device);
    lost = planc_status_code(status) == PLANC_DEVICE;
    planc_status_free(status);
    if (!lost) return wrong("a device that is lost can be synchronised");
  }
  released = true;
  return counted == 0 ? NULL : wrong("host work behind the end of the device has been done");
}

static planc_status with_device(const planrt_backend *backend,
                                planc_status (*check)(const planrt_backend *, rt_device *)) {
  const rt_device_options options = {
      .arena_bytes = BYTES, .host_arena_bytes = 2 * BYTES, .n_streams = 2, .n_events = 2, .concurrent = true};
  rt_device *device;
  PLANC_TRY(backend->open(&options, &device));
  planc_status status = check(backend, device);
  backend->close(device);
  return status;
}

/* --- Feeding ------------------------------------------------------------------------------------------------------ */

enum { MOST_RESULTS = 16 };

typedef struct run {
  planrt_session *session;
  int64_t n_feeds, fails_at;
  bool waits;
} run;

/* Results that have arrived where they are delivered from, though perhaps not delivered. */
static int32_t n_arrived(const planrt_session *session) {
  const volatile uint32_t *first = NULL;
  int32_t n = 0;
  for (int32_t b = 0; b < session->trace->n_buffers; b++) {
    if (session->result_at[b] < 0) continue;
    first = (const volatile uint32_t *)(const volatile void *)(session->results + session->result_at[b]);
    n += *first != 0;
  }
  return n;
}

static int32_t n_results(const planrt_session *session) {
  int32_t n = 0;
  for (int32_t b = 0; b < session->trace->n_buffers; b++) n += session->result_at[b] >= 0;
  return n;
}

/* The samples of the second iteration are there when all results of the first have been copied out. */
static planc_status feed(void *user, const planrt_feed_request *request) {
  run *r = user;
  int waits = 0;
  if (r->n_feeds++ == r->fails_at) return planc_error(PLANC_BAD_INPUT, "no more samples");
  while (r->waits && request->iteration == 1 && n_arrived(r->session) < n_results(r->session)) {
    if (waits++ == MOST_WAITS) return wrong("results do not come while a feed waits");
    pause_for(1000000);
  }
  return rt_random_feed(r->session, request);
}

static planc_status take(void *user, const planrt_result *result) {
  (void)user, (void)result;
  counted++;
  return NULL;
}

static planc_status open_run(const planrt_backend *backend, const char *path, bool replay, run *r, planc_plan **plan) {
  planrt_options options = {.backend = backend,
                            .concurrent = true,
                            .unchecked = true,
                            .replay = replay,
                            .feed = feed,
                            .sink = take,
                            .user = r};
  PLANC_TRY(planc_plan_read(path, plan));
  PLANC_TRY(planrt_session_new(*plan, &options, &r->session));
  return planrt_init(r->session);
}

static planc_status check_feeding(run *r) {
  if (n_results(r->session) < 2) return wrong("the plan has fewer than two results");
  r->waits = true;
  PLANC_TRY(planrt_run(r->session, 4));
  return counted == 4 * n_results(r->session) ? NULL : wrong("not every result has been delivered");
}

/* The periods that captured host work counts are right again after a failure. */
static planc_status check_replaying(run *r) {
  r->fails_at = 1;
  planc_status status = planrt_run(r->session, 4);
  bool told = planc_status_code(status) == PLANC_BAD_INPUT;
  planc_status_free(status);
  if (!told) return wrong("a feed's failure is not given");
  counted = 0;
  r->fails_at = -1;
  PLANC_TRY(planrt_run(r->session, 2));
  return counted == 2 * n_results(r->session) ? NULL : wrong("not every result has been delivered");
}

static planc_status with_run(const planrt_backend *backend, const char *path, bool replay,
                             planc_status (*check)(run *)) {
  planc_plan *plan = NULL;
  run r = {.fails_at = -1};
  planc_status status = open_run(backend, path, replay, &r, &plan);
  if (!status) status = check(&r);
  planrt_session_free(r.session);
  planc_plan_free(plan);
  return status;
}

int main(int argc, char **argv) {
  const planrt_backend *backend;
  const char *what = argc > 2 ? argv[2] : "", *path = argc > 3 ? argv[3] : NULL;
  planc_status status = argc > 2 ? planrt_backend_find(argv[1], &backend) : wrong("usage");
  if (!status && strcmp(what, "copying") == 0)
    status = with_device(backend, check_copying);
  else if (!status && strcmp(what, "dropping") == 0)
    status = with_device(backend, check_dropping);
  else if (!status && strcmp(what, "losing") == 0)
    status = with_device(backend, check_losing);
  else if (!status && strcmp(what, "feeding") == 0 && path)
    status = with_run(backend, path, false, check_feeding);
  else if (!status && strcmp(what, "replaying") == 0 && path)
    status = with_run(backend, path, backend->capture != NULL, check_replaying);
  else if (!status)
    status = wrong("usage");
  if (!status) return 0;
  fprintf(stderr, "backend_contract: %s\n", planc_status_message(status));
  planc_status_free(status);
  return 1;
}
