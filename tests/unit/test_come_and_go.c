/* Jobs that leave and join while a training runs: whatever plans come one after the other, each job has come to the
 * bits that it comes to alone in as many iterations, in a plan or away from it, and through checkpoints. On random
 * graphs by stand-ins for ops, and on small nets with Adam, dropout and momentum, whose results depend on the
 * iteration. */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cost/profile.h"
#include "planc/colocate.h"
#include "planrt/planrt.h"
#include "tests/support/graphtext.h"
#include "tests/support/nets.h"
#include "tests/support/randgraph.h"
#include "tests/support/unit.h"

enum { JOBS = 4, CHANGES = 6, MOST_LOSSES = 256 };

/* --- Jobs --------------------------------------------------------------------------------------------------------- */

static const char *const texts[] = {NARROW_NET("narrow"), WIDE_NET};

/* The jobs that there are: two may be of one graph and batch, and have names then. */
typedef struct crew {
  bool synthetic, named;
  planc_graph *graphs[JOBS]; /* NULL: that of the job before */
  planc_problem problems[JOBS];
} crew;

static planc_profile *profile;
static char path[64];
static const char *const names[JOBS] = {"a", "b", "c", "d"};

static void set_up(void) {
  ok(planc_profile_read("profiles/k40m.json", &profile));
  snprintf(path, sizeof path, "/tmp/planc-come-and-go-%ld", (long)getpid());
}
static void tear_down(void) {
  planc_profile_free(profile);
  unlink(path);
}

/* Jobs without names are told apart by their graphs'. */
static void make_graph(crew *c, int32_t job, uint64_t *seed) {
  static const planc_optimizer optimizers[] = {PLANC_ADAM, PLANC_MOMENTUM};
  if (c->synthetic) {
    ok(randgraph_make(rand_next(seed), &(randgraph_options){.max_ops = 12}, &c->graphs[job]));
  } else {
    planc_graph *forward = graph_of(texts[job % 2]);
    ok(planc_graph_train(forward, optimizers[job / 2], &c->graphs[job]));
    planc_graph_free(forward);
  }
  c->graphs[job]->name = names[job];
}

static void make_crew(uint64_t *seed, crew *out) {
  *out = (crew){.synthetic = rand_chance(seed, 50), .named = rand_chance(seed, 60)};
  for (int32_t j = 0; j < JOBS; j++) {
    bool again = out->named && j > 0 && rand_chance(seed, 40);
    if (!again) make_graph(out, j, seed);
    out->problems[j] =
        (planc_problem){.job.graph = again ? out->problems[j - 1].job.graph : out->graphs[j],
                        .job.profile = profile,
                        .job.batch = again ? out->problems[j - 1].job.batch : 2 + rand_below(seed, 5),
                        .terms.budgets[PLANC_MEMORY_DEVICE] = planc_profile_device(profile)->memory_bytes,
                        .terms.budgets[PLANC_MEMORY_HOST] = -1};
  }
}

static void free_crew(crew *c) {
  for (int32_t j = 0; j < JOBS; j++) planc_graph_free(c->graphs[j]);
}

/* --- Plans -------------------------------------------------------------------------------------------------------- */

/* A plan, and which jobs it has. */
typedef struct mixed {
  planc_plan *plan;
  int32_t n, jobs[JOBS];
} mixed;

/* Rounds would make it another training, to the bit. */
static bool has_rounds(const planc_plan *plan) {
  for (int32_t j = 0; j < plan->n_jobs; j++)
    if (plan->jobs[j].n_rounds > 1) return true;
  return false;
}

static bool is_usable(planc_status status, const char *policy, mixed *m) {
  if (planc_status_code(status) == PLANC_INFEASIBLE) {
    planc_status_free(status);
    return false;
  }
  ok_in(status, policy);
  if (!has_rounds(m->plan)) return true;
  planc_plan_free(m->plan);
  m->plan = NULL;
  return false;
}

/* Under a budget from what is just enough to all that there is. */
static bool make_mix(const crew *c, uint64_t *seed, mixed *m) {
  static const char *const policies[] = {"temporal", "zico", "waterwave", "tensile"};
  const char *policy = policies[rand_below(seed, 4)], *called[JOBS];
  planc_workload jobs[JOBS];
  planc_mix_share shares[JOBS];
  int32_t iterations[JOBS];
  planc_mix mix = {
      .terms = c->problems[0].terms, .n_jobs = m->n, .jobs = jobs, .iterations = iterations, .max_ratio = 3};
  planc_least least = {0};
  for (int32_t k = 0; k < m->n; k++) {
    jobs[k] = c->problems[m->jobs[k]].job;
    iterations[k] = 1 + (int32_t)rand_below(seed, 3);
    called[k] = names[m->jobs[k]];
  }
  if (c->named) mix.names = called;
  ok(planc_mix_resolve(&mix, shares));
  if (rand_chance(seed, 60)) {
    ok(planc_mix_find_least(&mix, planc_mix_policy_find("temporal"), shares, PLANC_MEMORY_DEVICE, NULL, &least));
    int64_t more = least.bytes + least.bytes / (1 + rand_below(seed, 20));
    mix.terms.budgets[PLANC_MEMORY_DEVICE] = more;
    planc_plan_free(least.plan);
  }
  return is_usable(planc_colocate(&mix, planc_mix_policy_find(policy), shares, &m->plan), policy, m);
}

/* By `planc plan`, which gives no names: a job that no other is like goes on without, and with its name again. */
static bool make_single(const crew *c, uint64_t *seed, mixed *m) {
  static const char *const policies[] = {"none", "vdnn-all", "naive", "window"};
  const char *policy = policies[rand_below(seed, 4)];
  return is_usable(planc_make_plan(&c->problems[m->jobs[0]], planc_policy_find(policy), &m->plan), policy, m);
}

static bool is_unlike_others(const crew *c, int32_t job) {
  for (int32_t j = 0; j < JOBS; j++)
    if (j != job && c->problems[j].job.graph == c->problems[job].job.graph) return false;
  return true;
}

/* Any of the jobs, in any order. */
static void draw_jobs(uint64_t *seed, mixed *out) {
  int32_t all[JOBS] = {0, 1, 2, 3};
  out->n = 1 + (int32_t)rand_below(seed, JOBS);
  for (int32_t k = 0; k < out->n; k++) {
    int32_t with = k + (int32_t)rand_below(seed, JOBS - k), taken = all[with];
    all[with] = all[k];
    out->jobs[k] = all[k] = taken;
  }
}

/* With one of those that the training has had, whose numbers are not below 0. */
static bool has_known(const mixed *m, const int32_t *number) {
  for (int32_t k = 0; k < m->n; k++)
    if (!number || number[m->jobs[k]] >= 0) return true;
  return false;
}

static void make_plan(const crew *c, uint64_t *seed, const int32_t *number, mixed *out) {
  do {
    *out = (mixed){0};
    draw_jobs(seed, out);
    if (!has_known(out, number) || (out->n == 1 && !is_unlike_others(c, out->jobs[0]))) continue;
    if (out->n == 1 ? make_single(c, seed, out) : make_mix(c, seed, out)) return;
  } while (true);
}

/* --- A training --------------------------------------------------------------------------------------------------- */

typedef struct training {
  const crew *c;
  mixed now;
  planc_plan *plans[CHANGES + 1];
  int32_t n_plans;
  planrt_session *session;
  planrt_options options;
  int64_t iterations[JOBS]; /* that each job has to have done */
  int32_t number[JOBS];     /* in the training; -1: it has not come yet */
  int32_t n_numbers;
  float losses[JOBS][MOST_LOSSES];
  int64_t n_losses[JOBS];
} training;

/* What a job is fed depends on its iteration, and on nothing else that changes. */
static planc_status feed(void *user, const planrt_feed_request *request) {
  const training *t = user;
  bool labels = !t->c->synthetic && request->bytes == request->count * (int64_t)sizeof(int64_t);
  uint64_t seed = (uint64_t)(request->iteration * 1000 + t->now.jobs[request->job] * 100000 + request->offset);
  for (int64_t i = 0; i < request->count && !t->c->synthetic; i++) {
    if (labels) ((int64_t *)request->out)[i] = rand_below(&seed, 3);
    for (int k = 0; k < 6 && !labels; k++)
      ((float *)request->out)[i * 6 + k] = (float)rand_below(&seed, 1000) / 1000.0F;
  }
  for (int64_t i = 0; i < request->bytes && t->c->synthetic; i++)
    ((unsigned char *)request->out)[i] = (unsigned char)rand_next(&seed);
  return NULL;
}

static planc_status take(void *user, const planrt_result *result) {
  training *t = user;
  int32_t job = t->now.jobs[result->job];
  const planc_graph *graph = t->now.plan->jobs[result->job].graph;
  if (t->c->synthetic || result->storage != graph->tensors[graph->loss].storage) return NULL;
  ck_assert_int_eq(result->iteration, t->n_losses[job]);
  ck_assert_int_lt(result->iteration, MOST_LOSSES);
  memcpy(&t->losses[job][result->iteration], result->data, sizeof(float));
  t->n_losses[job]++;
  return NULL;
}

/* The numbers that jobs have for good. */
static void number_jobs(training *t) {
  for (int32_t k = 0; k < t->now.n; k++)
    if (t->number[t->now.jobs[k]] < 0) t->number[t->now.jobs[k]] = t->n_numbers++;
  ck_assert_int_eq(planrt_jobs(t->session), t->n_numbers);
  for (int32_t k = 0; k < t->now.n; k++) ck_assert_int_eq(planrt_job_number(t->session, k), t->number[t->now.jobs[k]]);
  for (int32_t j = 0; j < JOBS; j++) {
    if (t->number[j] < 0) continue;
    planrt_job job = planrt_job_of(t->session, t->number[j]);
    bool in_plan = false;
    for (int32_t k = 0; k < t->now.n; k++) in_plan |= t->now.jobs[k] == j && job.job == k;
    ck_assert(in_plan == (job.job >= 0));
    ck_assert_int_eq(job.iterations, t->iterations[j]);
    ck_assert_str_eq(job.graph, t->c->problems[j].job.graph->name);
    ck_assert_ptr_null(job.why);
  }
}

static void start(const crew *c, uint64_t *seed, training *t) {
  *t = (training){.c = c, .options = {.seed = 11, .poison = true, .feed = feed, .sink = take, .user = t}};
  for (int32_t j = 0; j < JOBS; j++) t->number[j] = -1;
  t->options.synthetic = c->synthetic;
  t->options.concurrent = rand_chance(seed, 60);
  t->options.jitter = t->options.concurrent ? 1 + rand_next(seed) % 1000 : 0;
  t->options.verify = rand_chance(seed, 50);
  make_plan(c, seed, NULL, &t->now);
  t->plans[t->n_plans++] = t->now.plan;
  ok(planrt_session_new(t->now.plan, &t->options, &t->session));
  ok(planrt_init(t->session));
  number_jobs(t);
}

static void run(training *t, uint64_t *seed) {
  int64_t periods = rand_below(seed, 4);
  if (t->options.concurrent || rand_chance(seed, 50))
    ok(planrt_run(t->session, periods));
  else
    ok(planrt_run_interleaved(t->session, periods, rand_next(seed)));
  for (int32_t k = 0; k < t->now.n; k++) t->iterations[t->now.jobs[k]] += periods * t->now.plan->jobs[k].iterations;
}

/* A plan that no device has the memory for leaves all as it is. */
static void adopt_in_vain(training *t, planc_plan *plan) {
  planc_memory kept = plan->memories[0];
  int64_t peak = plan->predicted.peak_bytes[PLANC_MEMORY_DEVICE];
  plan->memories[0].arena_bytes = INT64_C(1) << 50;
  plan->memories[0].budget_bytes = -1;
  plan->predicted.peak_bytes[PLANC_MEMORY_DEVICE] = plan->memories[0].arena_bytes + kept.reserved_bytes;
  planc_status status = planrt_adopt(&t->session, plan);
  planc_code code = planc_status_code(status);
  ck_assert_msg(code == PLANC_DEVICE || code == PLANC_OUT_OF_MEMORY, "%s", planc_status_message(status));
  planc_status_free(status);
  plan->memories[0] = kept;
  plan->predicted.peak_bytes[PLANC_MEMORY_DEVICE] = peak;
  ck_assert(planrt_can_run(t->session));
  number_jobs(t);
}

/* Goes on with another plan: at once, or through a file and in a new session. */
static void change(training *t, uint64_t *seed) {
  mixed next;
  make_plan(t->c, seed, t->number, &next);
  t->plans[t->n_plans++] = next.plan;
  if (rand_chance(seed, 20)) adopt_in_vain(t, next.plan);
  if (rand_chance(seed, 60)) {
    ok(planrt_adopt(&t->session, next.plan));
    t->now = next;
  } else {
    ok(planrt_save(t->session, path));
    planrt_session_free(t->session);
    t->now = next;
    planrt_options other = t->options;
    other.seed = 99; /* the file has its own */
    ok(planrt_session_new(next.plan, &other, &t->session));
    ok(planrt_resume(t->session, path));
  }
  number_jobs(t);
}

/* --- Alone -------------------------------------------------------------------------------------------------------- */

/* All that persists of a job that is the only one of a session's plan. */
static char *values_of(const planrt_session *session, const planc_job *job, int64_t *out_bytes) {
  char *values = NULL;
  *out_bytes = 0;
  for (int32_t s = 0; s < job->graph->n_storages; s++) {
    int64_t bytes = planc_law_at(job->graph->storages[s].bytes, job->batch);
    if (!planc_kind_persists(job->graph->storages[s].kind) || bytes == 0) continue;
    values = realloc(values, (size_t)(*out_bytes + bytes));
    planc_status status = planrt_read(session, 0, 0, s, values + *out_bytes, bytes);
    if (!status) *out_bytes += bytes;
    planc_status_free(status); /* nothing touches it */
  }
  return values;
}

/* What the job has come to in the training, of which there is a checkpoint, is what it comes to alone. */
static void compare_alone(const training *t, int32_t job) {
  planc_plan *plan;
  planrt_session *alone, *resumed;
  int64_t bytes, more;
  ok(planc_make_plan(&t->c->problems[job], planc_policy_find("none"), &plan));
  if (t->c->named) ((planc_job *)plan->jobs)[0].name = names[job];
  training solo = {.c = t->c, .now = {.plan = plan, .n = 1, .jobs = {job}}, .options = t->options};
  solo.options.user = &solo;
  solo.options.concurrent = solo.options.verify = false;
  solo.options.jitter = 0;
  ok(planrt_session_new(plan, &solo.options, &alone));
  ok(planrt_init(alone));
  ok(planrt_run(alone, t->iterations[job]));
  ok(planrt_session_new(plan, &solo.options, &resumed));
  ok(planrt_resume(resumed, path));
  ck_assert_int_eq(planrt_job_of(resumed, t->number[job]).iterations, t->iterations[job]);
  char *want = values_of(alone, plan->jobs, &bytes), *got = values_of(resumed, plan->jobs, &more);
  ck_assert_int_eq(bytes, more);
  ck_assert_msg(bytes == 0 || memcmp(got, want, (size_t)bytes) == 0, "job %d after %lld iterations", job,
                (long long)t->iterations[job]);
  ck_assert_int_eq(solo.n_losses[job], t->n_losses[job]);
  ck_assert_mem_eq(solo.losses[job], t->losses[job], sizeof solo.losses[job]);
  free(want);
  free(got);
  planrt_session_free(alone);
  planrt_session_free(resumed);
  planc_plan_free(plan);
}

static void finish(training *t) {
  ok(planrt_save(t->session, path));
  planrt_session_free(t->session);
  for (int32_t j = 0; j < JOBS; j++)
    if (t->number[j] >= 0) compare_alone(t, j);
  for (int32_t p = 0; p < t->n_plans; p++) planc_plan_free(t->plans[p]);
}

/* --- Tests -------------------------------------------------------------------------------------------------------- */

START_TEST(each_job_is_as_if_alone) {
  static training t;
  uint64_t seed = (uint64_t)_i + 1;
  crew c;
  make_crew(&seed, &c);
  start(&c, &seed, &t);
  run(&t, &seed);
  for (int k = 0; k < CHANGES; k++) {
    change(&t, &seed);
    run(&t, &seed);
  }
  finish(&t);
  free_crew(&c);
}
END_TEST

/* --- By hand ------------------------------------------------------------------------------------------------------ */

/* Three nets with names, and plans of some of them. */
static void make_nets(crew *c) {
  static const int64_t batches[] = {4, 6, 5};
  uint64_t seed = 1;
  *c = (crew){.named = true};
  for (int32_t j = 0; j < 3; j++) {
    make_graph(c, j, &seed);
    c->problems[j] = (planc_problem){.job.graph = c->graphs[j],
                                     .job.profile = profile,
                                     .job.batch = batches[j],
                                     .terms.budgets[PLANC_MEMORY_DEVICE] = planc_profile_device(profile)->memory_bytes,
                                     .terms.budgets[PLANC_MEMORY_HOST] = -1};
  }
}

static mixed plan_of(const crew *c, int32_t n, const int32_t *jobs) {
  mixed m = {.n = n};
  uint64_t seed = 5;
  for (int32_t k = 0; k < n; k++) m.jobs[k] = jobs[k];
  ck_assert(n == 1 ? make_single(c, &seed, &m) : make_mix(c, &seed, &m));
  return m;
}

/* Fails a job in an iteration. */
typedef struct faulty {
  training t;
  int32_t job;
  int64_t iteration;
} faulty;

static planc_status feed_faulty(void *user, const planrt_feed_request *request) {
  const faulty *f = user;
  bool fails = f->t.now.jobs[request->job] == f->job && request->iteration == f->iteration;
  return fails ? planc_error(PLANC_BAD_INPUT, "no such batch") : feed((void *)&f->t, request);
}

static void start_faulty(const crew *c, const mixed *first, int32_t job, int64_t iteration, faulty *out) {
  *out = (faulty){.t = {.c = c, .now = *first}, .job = job, .iteration = iteration};
  out->t.options = (planrt_options){.seed = 11, .poison = true, .concurrent = true, .feed = feed_faulty, .user = out};
  ok(planrt_session_new(first->plan, &out->t.options, &out->t.session));
  ok(planrt_init(out->t.session));
}

static void adopt(faulty *f, const mixed *next) {
  ok(planrt_adopt(&f->t.session, next->plan));
  f->t.now = *next;
}

/* A job that has failed is so when it leaves, when it comes back, and after a resumption; others go on. */
START_TEST(failures_go_along) {
  static faulty f;
  crew c;
  make_nets(&c);
  mixed both = plan_of(&c, 2, (int32_t[]){0, 1}), first = plan_of(&c, 1, (int32_t[]){0});
  mixed second = plan_of(&c, 1, (int32_t[]){1}), turned = plan_of(&c, 2, (int32_t[]){1, 0});
  start_faulty(&c, &both, 1, 2, &f);
  ok(planrt_run(f.t.session, 6));
  int64_t done = planrt_job_of(f.t.session, 0).iterations;
  ck_assert_int_gt(done, 2);
  adopt(&f, &first);
  ck_assert_int_eq(planrt_job_of(f.t.session, 1).failed_at, 2);
  assert_fails(planrt_adopt(&f.t.session, second.plan), PLANC_STALE, "all of its jobs have failed");
  ok(planrt_run(f.t.session, 2));
  adopt(&f, &turned);
  ok(planrt_run(f.t.session, 1));
  ok(planrt_save(f.t.session, path));
  planrt_failure failure;
  ck_assert(planrt_failed(f.t.session, 0, &failure) && !planrt_failed(f.t.session, 1, &failure));
  ck_assert_int_eq(planrt_job_of(f.t.session, 0).iterations, done + 2 + turned.plan->jobs[1].iterations);
  planrt_session_free(f.t.session);
  f.t.now = first;
  ok(planrt_session_new(first.plan, &f.t.options, &f.t.session));
  ok(planrt_resume(f.t.session, path));
  ck_assert_ptr_nonnull(strstr(planrt_job_of(f.t.session, 1).why, "job 1 (b): "));
  ck_assert_ptr_nonnull(strstr(planrt_job_of(f.t.session, 1).why, "no such batch"));
  ck_assert_ptr_null(planrt_job_of(f.t.session, 0).why);
  planrt_session_free(f.t.session);
  mixed *all[] = {&both, &first, &second, &turned};
  for (int k = 0; k < 4; k++) planc_plan_free(all[k]->plan);
  free_crew(&c);
}
END_TEST

/* The only job of a plan fails by itself where the training has others, and ends the run with what they have kept. */
START_TEST(the_last_one_here_fails_alone) {
  static faulty f;
  crew c;
  make_nets(&c);
  mixed both = plan_of(&c, 2, (int32_t[]){0, 1}), first = plan_of(&c, 1, (int32_t[]){0});
  planrt_failure failure;
  start_faulty(&c, &both, 0, 20, &f);
  ok(planrt_run(f.t.session, 1));
  int64_t done = planrt_job_of(f.t.session, 1).iterations;
  adopt(&f, &first);
  ok(planrt_run(f.t.session, 60));
  ck_assert(planrt_failed(f.t.session, 0, &failure));
  ck_assert_int_eq(failure.iteration, 20);
  ck_assert_int_lt(planrt_get_step(f.t.session).period, 40);
  ck_assert_ptr_null(planrt_job_of(f.t.session, 1).why);
  ck_assert_int_eq(planrt_job_of(f.t.session, 1).iterations, done);
  planrt_session_free(f.t.session);
  planc_plan_free(both.plan);
  planc_plan_free(first.plan);
  free_crew(&c);
}
END_TEST

/* Reads what persists of the job of number 1, alone in a session of its own. */
static char *read_second(const crew *c, int64_t *out_bytes) {
  mixed second = plan_of(c, 1, (int32_t[]){1});
  planrt_session *session;
  ok(planrt_session_new(second.plan, &(planrt_options){0}, &session));
  ok(planrt_resume(session, path));
  char *values = values_of(session, second.plan->jobs, out_bytes);
  planrt_session_free(session);
  planc_plan_free(second.plan);
  return values;
}

/* Without a feed samples are drawn by the job's number: it keeps its own where it stands elsewhere in a plan. */
START_TEST(samples_follow_the_job) {
  crew c;
  char *values[2];
  int64_t bytes[2], iterations = 0;
  make_nets(&c);
  mixed both = plan_of(&c, 2, (int32_t[]){0, 1}), turned = plan_of(&c, 2, (int32_t[]){1, 2});
  mixed single = plan_of(&c, 1, (int32_t[]){1});
  for (int changes = 0; changes < 2; changes++) {
    planrt_session *session;
    ok(planrt_session_new(both.plan, &(planrt_options){.seed = 3}, &session));
    ok(planrt_init(session));
    ok(planrt_run(session, 2));
    if (changes) {
      ok(planrt_adopt(&session, turned.plan));
      ok(planrt_run(session, 1));
      ok(planrt_adopt(&session, single.plan));
      ok(planrt_run(session, iterations - planrt_job_of(session, 1).iterations));
    } else {
      ok(planrt_run(session, 4));
      iterations = planrt_job_of(session, 1).iterations;
    }
    ck_assert_int_eq(planrt_job_of(session, 1).iterations, iterations);
    ok(planrt_save(session, path));
    planrt_session_free(session);
    values[changes] = read_second(&c, &bytes[changes]);
  }
  ck_assert_int_gt(bytes[0], 100);
  ck_assert_int_eq(bytes[0], bytes[1]);
  ck_assert_mem_eq(values[0], values[1], (size_t)bytes[0]);
  for (int k = 0; k < 2; k++) free(values[k]);
  mixed *all[] = {&both, &turned, &single};
  for (int k = 0; k < 3; k++) planc_plan_free(all[k]->plan);
  free_crew(&c);
}
END_TEST

/* Where the step says that a job is before its first iteration, or beyond counting, nothing runs. */
START_TEST(positions_that_are_none_are_refused) {
  crew c;
  make_nets(&c);
  mixed both = plan_of(&c, 2, (int32_t[]){0, 1}), first = plan_of(&c, 1, (int32_t[]){0});
  planrt_session *session;
  ok(planrt_session_new(first.plan, &(planrt_options){.seed = 3}, &session));
  ok(planrt_init(session));
  ok(planrt_run(session, 5));
  ok(planrt_adopt(&session, both.plan));
  planrt_set_step(session, (planrt_step){.period = 4}); /* the second job began with period 5 */
  assert_fails(planrt_run(session, 1), PLANC_USAGE, "periods from 4 on");
  planrt_set_step(session, (planrt_step){.period = INT64_MAX - 3});
  assert_fails(planrt_run(session, 1), PLANC_USAGE, "periods from");
  planrt_set_step(session, (planrt_step){.period = 5});
  ok(planrt_run(session, 1));
  planrt_session_free(session);
  planc_plan_free(both.plan);
  planc_plan_free(first.plan);
  free_crew(&c);
}
END_TEST

int main(void) {
  Suite *suite = suite_create("come_and_go");
  TCase *cases = tcase_create("all");
  tcase_set_timeout(cases, 120);
  tcase_add_checked_fixture(cases, set_up, tear_down);
  tcase_add_loop_test(cases, each_job_is_as_if_alone, 0, sampled(24));
  tcase_add_test(cases, failures_go_along);
  tcase_add_test(cases, the_last_one_here_fails_alone);
  tcase_add_test(cases, samples_follow_the_job);
  tcase_add_test(cases, positions_that_are_none_are_refused);
  suite_add_tcase(suite, cases);
  return run_suite(suite);
}
