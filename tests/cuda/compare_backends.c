/* Compares a backend with the host, op by op, on a graph's own training iteration.
 *
 * usage: compare_backends [--json] [--once] [--most N] BACKEND GRAPH [BATCH [ROUNDS]]
 *
 * Before each op both backends have the same bytes, the host's; after it every output and side effect is compared, for
 * every algorithm that the backend has and with an added-to output where the op adds (tolerance.h says how far apart
 * they may be). Each algorithm runs twice, with its workspace full of NaNs and then as the first run has left it: the
 * bits must be the same, unless it is not deterministic. One that cannot be run is left out, as long as the op has
 * another; why is told on stderr. BATCH is by default the graph's own.
 *
 * Prints what differs, then a line for each kind of call and one for all; --json: one line of JSON for both. --most: of
 * each op only so many algorithms that can be run, those that its library puts first. --once: only one, and that once,
 * for tools that take their time. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/session.h"
#include "tests/cuda/samples.h"
#include "tests/cuda/tally.h"
#include "util/math.h"

enum { MOST_ROUNDS = 64 };

typedef struct comparison {
  const planrt_backend *backend;
  bool once;
  int64_t most; /* algorithms of each op */
  planc_graph *graph;
  planrt_session session; /* trace, homes and staging on the host */
  rt_device *host, *device;
  int64_t *offsets; /* by buffer */
  int64_t bytes;    /* of all buffers */
  int64_t workspace_bytes;
  pl_arena memory;
  void **host_memory, **device_memory; /* of one instance's accesses */
  rt_variant variants[RT_MAX_VARIANTS];
  tally tally;
} comparison;

/* An instance on both sides, and what the host has made of it. */
typedef struct pair {
  int32_t instance;
  rt_call host, device;
  int32_t n_results;
  char **want, **got[2]; /* by result; got: of two runs */
  tolerance *tolerances; /* by result */
  tally_kind *kind;
} pair;

/* --- Setting up --------------------------------------------------------------------------------------------------- */

static planc_status lay_out(comparison *c) {
  const planc_trace *trace = c->session.trace;
  PLANC_TRY(PL_NEW(&c->memory, &c->offsets, trace->n_buffers));
  for (int32_t b = 0; b < trace->n_buffers; b++) {
    c->offsets[b] = c->bytes;
    c->bytes += pl_align_up(trace->buffers[b].bytes, RT_ALIGNMENT);
  }
  PLANC_TRY(PL_NEW(&c->memory, &c->host_memory, rt_most_accesses(trace)));
  return PL_NEW(&c->memory, &c->device_memory, rt_most_accesses(trace));
}

static planc_status make_call(comparison *c, int32_t instance, rt_call *host, rt_call *device) {
  const planc_trace *trace = c->session.trace;
  const planc_instance *at = &trace->instances[instance];
  for (int32_t k = 0; k < at->n_accesses; k++) {
    int64_t offset = c->offsets[trace->accesses[at->first_access + k].buffer];
    c->host_memory[k] = rt_host_backend.arena(c->host) + offset;
    c->device_memory[k] = (c->device ? c->backend->arena(c->device) : NULL) + offset;
  }
  PLANC_TRY(rt_call_make(&c->memory, trace, 0, instance, c->host_memory, host));
  return rt_call_make(&c->memory, trace, 0, instance, c->device_memory, device);
}

/* The backend's algorithms for a call; none where it has none, and why. */
static planc_status list_variants(comparison *c, rt_device *device, const rt_call *call, int32_t *out_count,
                                  planc_status *out_why) {
  *out_why = c->backend->variants(device, call, c->variants, out_count);
  if (!*out_why) return NULL;
  *out_count = 0;
  planc_status status = *out_why;
  if (planc_status_code(status) == PLANC_DEVICE) return NULL;
  *out_why = NULL;
  return status;
}

/* The largest workspace that any algorithm of any op has. */
static planc_status find_workspace(comparison *c) {
  rt_device_options nothing = {0};
  rt_device *device;
  PLANC_TRY(c->backend->open(&nothing, &device));
  planc_status status = NULL;
  for (int32_t i = 0; !status && i < c->session.trace->n_instances; i++) {
    rt_call host, other;
    int32_t count = 0;
    planc_status none = NULL;
    status = make_call(c, i, &host, &other);
    if (!status) status = list_variants(c, device, &other, &count, &none);
    planc_status_free(none); /* told when it is compared */
    for (int32_t v = 0; !status && v < count; v++)
      if (c->variants[v].workspace_bytes > c->workspace_bytes) c->workspace_bytes = c->variants[v].workspace_bytes;
  }
  c->backend->close(device);
  return status;
}

static planc_status set_up(comparison *c, int64_t batch, int64_t n_rounds, int64_t *rounds) {
  for (int64_t r = 0; r < n_rounds; r++) rounds[r] = batch * (r + 1) / n_rounds - batch * r / n_rounds;
  planc_job job = {.graph = c->graph, .batch = batch, .n_rounds = (int32_t)n_rounds, .rounds = rounds, .iterations = 1};
  PLANC_TRY(planc_expand(&job, 1, &c->session.trace));
  PLANC_TRY(rt_jobs_open(&c->session));
  PLANC_TRY(rt_user_open(&c->session));
  PLANC_TRY(planrt_init(&c->session));
  PLANC_TRY(lay_out(c));
  rt_device_options options = {.arena_bytes = c->bytes, .n_streams = 1};
  PLANC_TRY(rt_host_backend.open(&options, &c->host));
  PLANC_TRY(find_workspace(c));
  options.arena_bytes = c->bytes + c->workspace_bytes;
  return c->backend->open(&options, &c->device);
}

/* --- Running ------------------------------------------------------------------------------------------------------ */

static rt_launch launch_of(void) {
  return (rt_launch){.step = {.learning_rate = 0.1}, .seed = 7};
}

/* Moves what an instance touches between the host's arena and `image`, which has room for all of it. */
static void move_image(const comparison *c, int32_t instance, char *image, bool save) {
  const planc_trace *trace = c->session.trace;
  const planc_instance *at = &trace->instances[instance];
  for (int32_t k = 0; k < at->n_accesses; k++) {
    int32_t buffer = trace->accesses[at->first_access + k].buffer;
    char *here = rt_host_backend.arena(c->host) + c->offsets[buffer];
    size_t bytes = (size_t)trace->buffers[buffer].bytes;
    memcpy(save ? image : here, save ? here : image, bytes);
    image += bytes;
  }
}

static planc_status new_image(comparison *c, int32_t instance, char **out) {
  const planc_trace *trace = c->session.trace;
  const planc_instance *at = &trace->instances[instance];
  int64_t bytes = 1;
  for (int32_t k = 0; k < at->n_accesses; k++)
    bytes += trace->buffers[trace->accesses[at->first_access + k].buffer].bytes;
  return PL_NEW(&c->memory, out, bytes);
}

/* Runs the op on the host and keeps what it puts out. */
static planc_status run_host(comparison *c, pair *p) {
  rt_launch launch = launch_of();
  rt_call *host = &p->host;
  int32_t count;
  PLANC_TRY(rt_host_backend.variants(c->host, host, c->variants, &count));
  host->algorithm = c->variants[0].algorithm;
  host->workspace_bytes = c->variants[0].workspace_bytes;
  char *workspace;
  PLANC_TRY(PL_NEW(&c->memory, &workspace, host->workspace_bytes + RT_ALIGNMENT));
  host->workspace = (char *)pl_align_up((int64_t)(intptr_t)workspace, RT_ALIGNMENT);
  PLANC_TRY(rt_host_backend.prepare(c->host, host));
  PLANC_TRY(rt_host_backend.launch(c->host, 0, host, &launch, NULL));
  for (int32_t r = 0; r < p->n_results; r++) {
    const rt_operand *from = call_result(host, r);
    if (from->data) memcpy(p->want[r], from->data, (size_t)from->bytes);
  }
  return NULL;
}

/* Runs an algorithm on the device, whose memory has then what the host's has, and brings its results back. */
static planc_status run_device(comparison *c, const pair *p, bool poison, char *const *out) {
  const planrt_backend *backend = c->backend;
  const planc_trace *trace = c->session.trace;
  const planc_instance *at = &trace->instances[p->instance];
  rt_launch launch = launch_of();
  for (int32_t k = 0; k < at->n_accesses; k++) {
    int32_t buffer = trace->accesses[at->first_access + k].buffer;
    PLANC_TRY(backend->copy(c->device, 0, RT_H2D, backend->arena(c->device) + c->offsets[buffer],
                            rt_host_backend.arena(c->host) + c->offsets[buffer], trace->buffers[buffer].bytes, NULL));
  }
  if (poison) PLANC_TRY(backend->poison(c->device, 0, p->device.workspace, p->device.workspace_bytes));
  PLANC_TRY(backend->launch(c->device, 0, &p->device, &launch, NULL));
  for (int32_t r = 0; r < p->n_results; r++) {
    const rt_operand *from = call_result(&p->device, r);
    if (from->data) PLANC_TRY(backend->copy(c->device, 0, RT_D2H, out[r], from->data, from->bytes, NULL));
  }
  return backend->synchronize(c->device);
}

/* --- Comparing ---------------------------------------------------------------------------------------------------- */

static void report(const pair *p, int32_t result, const char *what, double off) {
  p->kind->failures++;
  printf("%s (%s) by %s: result %d %s", p->host.op->name, p->kind->type, p->device.algorithm, result, what);
  printf(off > 0 ? ", %.3g of what is allowed\n" : "\n", off);
}

static void compare_results(const comparison *c, const pair *p, const rt_variant *by) {
  for (int32_t r = 0; r < p->n_results; r++) {
    const rt_operand *of = call_result(&p->host, r);
    if (!of->data) continue;
    if (!c->once && by->deterministic && memcmp(p->got[0][r], p->got[1][r], (size_t)of->bytes) != 0)
      report(p, r, "has other bits the second time", 0);
    tolerance allowed = tolerance_noted(p->tolerances[r], by->notes);
    difference off = tolerance_compare(&allowed, of, p->want[r], p->got[0][r]);
    p->kind->worst.error = fmax(p->kind->worst.error, off.error);
    p->kind->worst.allowed = fmax(p->kind->worst.allowed, off.allowed);
    if (off.allowed > 1) report(p, r, "differs from the host's", off.allowed);
  }
}

/* What a library lists may fail when it is run, or find no memory. */
static planc_status prepare(comparison *c, pair *p, bool *out_ready) {
  planc_status status = c->backend->prepare(c->device, &p->device);
  planc_code code = planc_status_code(status);
  *out_ready = !status;
  if (code != PLANC_DEVICE && code != PLANC_OUT_OF_MEMORY)
    return planc_context(status, "%s by %s", p->device.op->name, p->device.algorithm);
  fprintf(stderr, "%s (%s) by %s: left out: %s\n", p->host.op->name, p->kind->type, p->device.algorithm,
          planc_status_message(status));
  planc_status_free(status);
  p->kind->left_out++;
  return NULL;
}

static planc_status compare_variant(comparison *c, pair *p, const rt_variant *by, bool *out_ready) {
  p->device.algorithm = by->algorithm;
  p->device.workspace = c->backend->arena(c->device) + c->bytes;
  p->device.workspace_bytes = by->workspace_bytes;
  PLANC_TRY(prepare(c, p, out_ready));
  if (!*out_ready) return NULL;
  PLANC_TRY(planc_context(run_device(c, p, true, p->got[0]), "%s by %s", p->host.op->name, by->algorithm));
  if (!c->once) PLANC_TRY(run_device(c, p, false, p->got[1]));
  compare_results(c, p, by);
  p->kind->algorithms++;
  return NULL;
}

static planc_status make_pair(comparison *c, int32_t instance, pair *p) {
  *p = (pair){.instance = instance};
  PLANC_TRY(make_call(c, instance, &p->host, &p->device));
  p->n_results = call_results(&p->host);
  char ***const rows[] = {&p->want, &p->got[0], &p->got[1]};
  for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
    PLANC_TRY(PL_NEW(&c->memory, rows[k], p->n_results));
    for (int32_t r = 0; r < p->n_results; r++)
      PLANC_TRY(PL_NEW(&c->memory, &(*rows[k])[r], call_result(&p->host, r)->bytes + 1));
  }
  p->kind = tally_of(&c->tally, &p->host);
  if (!p->kind) return planc_error(PLANC_OUT_OF_MEMORY, "kinds of calls");
  return PL_NEW(&c->memory, &p->tolerances, p->n_results);
}

static planc_status find_tolerances(pair *p) {
  for (int32_t r = 0; r < p->n_results; r++)
    if (!tolerance_of(&p->host, r, p->want, &p->tolerances[r]))
      return planc_error(PLANC_INTERNAL, "%s has no tolerance", p->kind->type);
  return NULL;
}

static int compare_ranks(const void *a, const void *b) {
  return ((const rt_variant *)a)->rank - ((const rt_variant *)b)->rank;
}

/* All of the backend's algorithms start from where the host's started; then all goes on from where that ended. */
static planc_status compare_instance(comparison *c, int32_t instance) {
  pair p;
  int32_t count = 0, n_run = 0;
  char *before, *after;
  planc_status none;
  PLANC_TRY(make_pair(c, instance, &p));
  PLANC_TRY(new_image(c, instance, &before));
  PLANC_TRY(new_image(c, instance, &after));
  move_image(c, instance, before, true);
  PLANC_TRY(run_host(c, &p));
  move_image(c, instance, after, true);
  move_image(c, instance, before, false);
  PLANC_TRY(find_tolerances(&p));
  PLANC_TRY(list_variants(c, c->device, &p.device, &count, &none));
  qsort(c->variants, (size_t)count, sizeof *c->variants, compare_ranks);
  for (int32_t v = 0; v < count && n_run < c->most; v++) {
    bool ready;
    PLANC_TRY(compare_variant(c, &p, &c->variants[v], &ready));
    n_run += ready;
  }
  p.kind->calls++;
  if (n_run == 0) {
    p.kind->failures++;
    p.kind->not_run++;
    printf("%s (%s): no algorithm can be run%s%s\n", p.host.op->name, p.kind->type, none ? ": " : "",
           none ? planc_status_message(none) : "");
  }
  planc_status_free(none);
  move_image(c, instance, after, false);
  return NULL;
}

static planc_status compare(comparison *c, const char *path, int64_t batch, int64_t n_rounds) {
  const char *derived;
  int64_t rounds[MOST_ROUNDS];
  PLANC_TRY(planc_graph_prepare(path, NULL, false, &c->graph, &derived));
  if (batch == 0) batch = c->graph->batch;
  if (batch < n_rounds)
    return planc_error(PLANC_USAGE, "a batch of %lld in %lld rounds", (long long)batch, (long long)n_rounds);
  PLANC_TRY(set_up(c, batch, n_rounds, rounds));
  PLANC_TRY(samples_fill(&c->session, c->offsets, rt_host_backend.arena(c->host)));
  for (int32_t i = 0; i < c->session.trace->n_instances; i++) {
    /* What an instance takes is given back. */
    pl_arena kept = c->memory;
    c->memory = (pl_arena){0};
    planc_status status = compare_instance(c, i);
    pl_arena_free(&c->memory);
    c->memory = kept;
    PLANC_TRY(planc_context(status, "instance %d", i));
  }
  return NULL;
}

/* --- The program -------------------------------------------------------------------------------------------------- */

typedef struct arguments {
  bool json, once;
  const char *backend, *graph;
  int64_t most, batch, rounds;
} arguments;

static bool read_option(int argc, char **argv, int *at, arguments *out) {
  if (strcmp(argv[*at], "--json") == 0) {
    out->json = true;
  } else if (strcmp(argv[*at], "--once") == 0) {
    out->once = true;
    out->most = 1;
  } else if (strcmp(argv[*at], "--most") == 0 && *at + 1 < argc) {
    out->most = strtol(argv[++*at], NULL, 10);
  } else {
    return false;
  }
  return out->most > 0;
}

static bool read_arguments(int argc, char **argv, arguments *out) {
  *out = (arguments){.most = RT_MAX_VARIANTS, .rounds = 1};
  int at = 1;
  for (; at < argc && argv[at][0] == '-'; at++)
    if (!read_option(argc, argv, &at, out)) return false;
  if (argc - at < 2 || argc - at > 4) return false;
  out->backend = argv[at];
  out->graph = argv[at + 1];
  if (argc - at > 2) out->batch = strtol(argv[at + 2], NULL, 10);
  if (argc - at > 3) out->rounds = strtol(argv[at + 3], NULL, 10);
  return (argc - at < 3 || out->batch > 0) && out->rounds > 0 && out->rounds <= MOST_ROUNDS;
}

static void close_all(comparison *c) {
  if (c->device) c->backend->close(c->device);
  if (c->host) rt_host_backend.close(c->host);
  rt_user_close(&c->session);
  planc_trace_free(c->session.trace);
  pl_arena_free(&c->session.memory);
  pl_arena_free(&c->memory);
  planc_graph_free(c->graph);
  tally_free(&c->tally);
  free(c);
}

int main(int argc, char **argv) {
  arguments given;
  comparison *c = calloc(1, sizeof *c);
  if (!c || !read_arguments(argc, argv, &given)) {
    fprintf(stderr, "usage: compare_backends [--json] [--once] [--most N] BACKEND GRAPH [BATCH [ROUNDS]]\n");
    free(c);
    return 2;
  }
  c->once = given.once;
  c->most = given.most;
  planc_status status = planrt_backend_find(given.backend, &c->backend);
  c->session.backend = &rt_host_backend;
  if (!status) status = compare(c, given.graph, given.batch, given.rounds);
  if (status) fprintf(stderr, "compare_backends: %s\n", planc_status_message(status));
  tally_print(&c->tally, given.graph, given.json);
  tally_kind sum = tally_sum(&c->tally);
  int code = status || sum.failures > 0 || sum.algorithms == 0;
  planc_status_free(status);
  close_all(c);
  return code;
}
