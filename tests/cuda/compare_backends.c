/* Compares a backend with the host, op by op, on a graph's own training iteration.
 *
 * usage: compare_backends BACKEND GRAPH BATCH [ROUNDS]
 *
 * Before each op both backends have the same bytes, the host's; after it every output and side effect is compared, for
 * every algorithm that the backend has and with an added-to output where the op adds. An element may differ by a share
 * of the output's largest: 1e-4 in f32, whose sums are ordered otherwise, 2^-9 in TF32 and 2^-7 in bf16. What does not
 * round must not differ. Each algorithm runs twice, with its workspace full of NaNs and then as the first run has left
 * it: the bits must be the same. One that cannot be run is told and left out, as long as the op has another. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/bf16.h"
#include "runtime/session.h"
#include "util/math.h"

typedef struct comparison {
  const planrt_backend *backend;
  planc_graph *graph;
  planrt_session session; /* trace, homes and staging on the host */
  planrt_device *host, *device;
  int64_t *offsets; /* by buffer */
  int64_t bytes;    /* of all buffers */
  int64_t workspace_bytes;
  planc_arena memory;
  void **host_memory, **device_memory; /* scratch: of one instance's accesses */
  char *scratch[2];                    /* outputs brought back */
  planrt_variant variants[PLANRT_MAX_VARIANTS];
  int64_t n_calls, n_failures, n_refused;
  double worst; /* difference as a share of what is allowed */
} comparison;

/* --- Setting up ------------------------------------------------------------------------------------------------- */

static planc_status lay_out(comparison *c) {
  const planc_trace *trace = c->session.trace;
  int64_t largest = 0;
  int32_t most = 0;
  PLANC_TRY(PLANC_NEW(&c->memory, &c->offsets, trace->n_buffers));
  for (int32_t b = 0; b < trace->n_buffers; b++) {
    c->offsets[b] = c->bytes;
    c->bytes += planc_align_up(trace->buffers[b].bytes, PLANRT_ALIGNMENT);
    if (trace->buffers[b].bytes > largest) largest = trace->buffers[b].bytes;
  }
  for (int32_t i = 0; i < trace->n_instances; i++)
    if (trace->instances[i].n_accesses > most) most = trace->instances[i].n_accesses;
  PLANC_TRY(PLANC_NEW(&c->memory, &c->host_memory, most));
  PLANC_TRY(PLANC_NEW(&c->memory, &c->device_memory, most));
  PLANC_TRY(PLANC_NEW(&c->memory, &c->scratch[0], largest + 1));
  return PLANC_NEW(&c->memory, &c->scratch[1], largest + 1);
}

static planc_status make_call(comparison *c, int32_t instance, planrt_call *host, planrt_call *device) {
  const planc_trace *trace = c->session.trace;
  const planc_instance *at = &trace->instances[instance];
  for (int32_t k = 0; k < at->n_accesses; k++) {
    int64_t offset = c->offsets[trace->accesses[at->first_access + k].buffer];
    c->host_memory[k] = planrt_host_backend.arena(c->host) + offset;
    c->device_memory[k] = (c->device ? c->backend->arena(c->device) : NULL) + offset;
  }
  PLANC_TRY(planrt_call_make(&c->memory, trace, instance, c->host_memory, host));
  return planrt_call_make(&c->memory, trace, instance, c->device_memory, device);
}

/* The largest workspace that any algorithm of any op has. */
static planc_status find_workspace(comparison *c) {
  planrt_device_options nothing = {0};
  planrt_device *device;
  PLANC_TRY(c->backend->open(&nothing, &device));
  planc_status status = NULL;
  for (int32_t i = 0; !status && i < c->session.trace->n_instances; i++) {
    planrt_call host, other;
    int32_t count = 0;
    status = make_call(c, i, &host, &other);
    if (!status)
      status = planc_context(c->backend->variants(device, &other, c->variants, &count), "%s", other.op->name);
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
  PLANC_TRY(planrt_user_open(&c->session));
  PLANC_TRY(planrt_init(&c->session));
  PLANC_TRY(lay_out(c));
  planrt_device_options options = {.arena_bytes = c->bytes, .n_streams = 1};
  PLANC_TRY(planrt_host_backend.open(&options, &c->host));
  PLANC_TRY(find_workspace(c));
  options.arena_bytes = c->bytes + c->workspace_bytes;
  return c->backend->open(&options, &c->device);
}

/* Parameters, state and samples where they belong; everything else is zero. */
static planc_status fill(comparison *c) {
  const planc_trace *trace = c->session.trace;
  char *arena = planrt_host_backend.arena(c->host);
  memset(arena, 0, (size_t)c->bytes);
  for (int32_t b = 0; b < trace->n_buffers; b++) {
    const planc_buffer *buffer = &trace->buffers[b];
    char *at = arena + c->offsets[b];
    if (buffer->flags & PLANC_BUFFER_PERSISTENT) memcpy(at, planrt_home(&c->session, buffer), (size_t)buffer->bytes);
    if (buffer->flags & PLANC_BUFFER_FED) PLANC_TRY(planrt_ask(planrt_random_feed, &c->session, trace, b, 0, at));
  }
  return NULL;
}

/* --- Comparing -------------------------------------------------------------------------------------------------- */

static double element(const planrt_operand *of, const char *data, int64_t index) {
  if (planrt_is_real(of->dtype)) return (double)planrt_real_at(of->dtype, data, index);
  return (double)((const int64_t *)(const void *)data)[index];
}

static double largest_of(const planrt_operand *of, const char *data) {
  double largest = 0;
  for (int64_t i = 0; i < of->elements; i++) {
    double value = fabs(element(of, data, i));
    if (isfinite(value) && value > largest) largest = value;
  }
  return largest;
}

/* The least that an output's largest element counts as, for sums that cancel: a hundredth of what the largest element
 * of an input amounts to in as many as go into one output. */
static double least_scale(const planrt_call *host) {
  double most = 0;
  for (int32_t i = 0; i < host->n_in; i++) {
    if (!planrt_is_real(host->in[i].dtype) || host->out[0].elements == 0) continue;
    double each = (double)host->in[i].elements / (double)host->out[0].elements;
    double sum = largest_of(&host->in[i], host->in[i].data) * (each > 1 ? each : 1);
    if (sum > most) most = sum;
  }
  return most / 100;
}

/* The largest difference as a share of what is allowed; NaN and infinity differ from anything but themselves. */
static double difference(const planrt_call *call, const planrt_operand *of, double scale, const char *want,
                         const char *got) {
  double largest = fmax(largest_of(of, want), scale), worst = 0;
  bool tf32 = planc_op_int(call->op, "tf32", 0, 0) != 0;
  double share = of->dtype == PLANC_DTYPE_bf16 ? 0x1p-7 : tf32 ? 0x1p-9 : 1e-4;
  for (int64_t i = 0; i < of->elements; i++) {
    double a = element(of, want, i), b = element(of, got, i);
    if (a == b || (isnan(a) && isnan(b))) continue;
    double off = isfinite(a) && isfinite(b) && largest > 0 ? fabs(a - b) / (share * largest) : INFINITY;
    if (off > worst) worst = off;
  }
  return worst;
}

/* Gives the device what the host has of everything that the instance touches. */
static planc_status bring(comparison *c, int32_t instance) {
  const planc_trace *trace = c->session.trace;
  const planc_instance *at = &trace->instances[instance];
  for (int32_t k = 0; k < at->n_accesses; k++) {
    int32_t buffer = trace->accesses[at->first_access + k].buffer;
    PLANC_TRY(c->backend->copy(c->device, 0, PLANRT_H2D, c->backend->arena(c->device) + c->offsets[buffer],
                               planrt_host_backend.arena(c->host) + c->offsets[buffer], trace->buffers[buffer].bytes,
                               NULL));
  }
  return NULL;
}

/* Its outputs, then its side effects. */
static int32_t n_results(const planrt_call *call) {
  return call->n_out + call->n_effects;
}
static const planrt_operand *result(const planrt_call *call, int32_t index) {
  return index < call->n_out ? &call->out[index] : &call->effects[index - call->n_out];
}

static void report(comparison *c, const planrt_call *call, const char *what, int32_t output, double off) {
  c->n_failures++;
  printf("%s (%s) by %s: result %d %s", call->op->name, call->op->type, call->algorithm, output, what);
  printf(off > 0 ? ", %.3g of what is allowed\n" : "\n", off);
}

/* Runs an algorithm on the device, with its workspace poisoned or as it is, and brings a result back. */
static planc_status run_once(comparison *c, int32_t instance, planrt_call *call, bool poison, int32_t index,
                             char *out) {
  planrt_launch launch = {.step = {.learning_rate = 0.1}, .seed = 7};
  const planrt_operand *from = result(call, index);
  PLANC_TRY(bring(c, instance));
  if (poison) PLANC_TRY(c->backend->poison(c->device, 0, call->workspace, call->workspace_bytes));
  PLANC_TRY(c->backend->launch(c->device, 0, call, &launch, NULL));
  PLANC_TRY(c->backend->copy(c->device, 0, PLANRT_D2H, out, from->data, from->bytes, NULL));
  return c->backend->synchronize(c->device);
}

static planc_status compare_variant(comparison *c, int32_t instance, const planrt_call *host, planrt_call *call,
                                    char *const *want) {
  for (int32_t r = 0; r < n_results(call); r++) {
    const planrt_operand *of = result(host, r);
    if (!result(call, r)->data) continue;
    PLANC_TRY(run_once(c, instance, call, true, r, c->scratch[0]));
    PLANC_TRY(run_once(c, instance, call, false, r, c->scratch[1]));
    if (memcmp(c->scratch[0], c->scratch[1], (size_t)of->bytes) != 0)
      report(c, call, "has other bits the second time", r, 0);
    double off = difference(host, of, least_scale(host), want[r], c->scratch[0]);
    if (off > c->worst) c->worst = off;
    if (off > 1) report(c, call, "differs from the host's", r, off);
  }
  c->n_calls++;
  return NULL;
}

/* Moves what an instance touches between the host's arena and `image`, which has room for all of it. */
static void move_image(const comparison *c, int32_t instance, char *image, bool save) {
  const planc_trace *trace = c->session.trace;
  const planc_instance *at = &trace->instances[instance];
  for (int32_t k = 0; k < at->n_accesses; k++) {
    int32_t buffer = trace->accesses[at->first_access + k].buffer;
    char *here = planrt_host_backend.arena(c->host) + c->offsets[buffer];
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
  return PLANC_NEW(&c->memory, out, bytes);
}

/* Runs the op on the host and keeps what it puts out. */
static planc_status run_host(comparison *c, planrt_call *host, char ***out_want) {
  planrt_launch launch = {.step = {.learning_rate = 0.1}, .seed = 7};
  char **want;
  int32_t count;
  PLANC_TRY(planrt_host_backend.variants(c->host, host, c->variants, &count));
  host->algorithm = c->variants[0].algorithm;
  host->workspace_bytes = c->variants[0].workspace_bytes;
  char *workspace;
  PLANC_TRY(PLANC_NEW(&c->memory, &workspace, host->workspace_bytes + PLANRT_ALIGNMENT));
  host->workspace = (char *)planc_align_up((int64_t)(intptr_t)workspace, PLANRT_ALIGNMENT);
  PLANC_TRY(planrt_host_backend.prepare(c->host, host));
  PLANC_TRY(planrt_host_backend.launch(c->host, 0, host, &launch, NULL));
  PLANC_TRY(PLANC_NEW(&c->memory, out_want, n_results(host)));
  want = *out_want;
  for (int32_t r = 0; r < n_results(host); r++) {
    const planrt_operand *from = result(host, r);
    PLANC_TRY(PLANC_NEW(&c->memory, &want[r], from->bytes + 1));
    if (from->data) memcpy(want[r], from->data, (size_t)from->bytes);
  }
  return NULL;
}

/* What a library lists may fail when it is run. */
static planc_status prepare(comparison *c, planrt_call *call, bool *out_ready) {
  planc_status status = c->backend->prepare(c->device, call);
  *out_ready = !status;
  if (planc_status_code(status) != PLANC_DEVICE)
    return planc_context(status, "%s by %s", call->op->name, call->algorithm);
  printf("%s (%s) by %s: left out: %s\n", call->op->name, call->op->type, call->algorithm,
         planc_status_message(status));
  planc_status_free(status);
  c->n_refused++;
  return NULL;
}

/* All of the backend's algorithms start from where the host's started; then all goes on from where that ended. */
static planc_status compare_instance(comparison *c, int32_t instance) {
  planrt_call host, call;
  int32_t count, n_run = 0;
  char *before, *after, **want;
  PLANC_TRY(make_call(c, instance, &host, &call));
  PLANC_TRY(new_image(c, instance, &before));
  PLANC_TRY(new_image(c, instance, &after));
  move_image(c, instance, before, true);
  PLANC_TRY(run_host(c, &host, &want));
  move_image(c, instance, after, true);
  move_image(c, instance, before, false);
  PLANC_TRY(c->backend->variants(c->device, &call, c->variants, &count));
  for (int32_t v = 0; v < count; v++) {
    call.algorithm = c->variants[v].algorithm;
    call.workspace = c->backend->arena(c->device) + c->bytes;
    call.workspace_bytes = c->variants[v].workspace_bytes;
    bool ready;
    PLANC_TRY(prepare(c, &call, &ready));
    n_run += ready;
    if (ready && c->variants[v].deterministic) PLANC_TRY(compare_variant(c, instance, &host, &call, want));
  }
  move_image(c, instance, after, false);
  return n_run > 0 ? NULL : planc_error(PLANC_DEVICE, "%s: no algorithm can be run", call.op->name);
}

static planc_status compare(comparison *c, const char *path, int64_t batch, int64_t n_rounds) {
  const char *derived;
  int64_t rounds[64];
  PLANC_TRY(planc_graph_prepare(path, NULL, false, &c->graph, &derived));
  PLANC_TRY(set_up(c, batch, n_rounds, rounds));
  PLANC_TRY(fill(c));
  for (int32_t i = 0; i < c->session.trace->n_instances; i++) {
    /* What an instance takes is given back. */
    planc_arena kept = c->memory;
    c->memory = (planc_arena){0};
    planc_status status = compare_instance(c, i);
    planc_arena_free(&c->memory);
    c->memory = kept;
    PLANC_TRY(planc_context(status, "instance %d", i));
  }
  return NULL;
}

int main(int argc, char **argv) {
  comparison *c = calloc(1, sizeof *c);
  long batch = argc > 3 ? strtol(argv[3], NULL, 10) : 0, rounds = argc > 4 ? strtol(argv[4], NULL, 10) : 1;
  if (!c || batch < 1 || rounds < 1 || rounds > 64) {
    fprintf(stderr, "usage: compare_backends BACKEND GRAPH BATCH [ROUNDS]\n");
    return 2;
  }
  planc_status status = planrt_backend_find(argv[1], &c->backend);
  c->session.backend = &planrt_host_backend;
  if (!status) status = compare(c, argv[2], batch, rounds);
  if (status) fprintf(stderr, "compare_backends: %s\n", planc_status_message(status));
  printf("%s: %lld calls compared, %lld left out, worst %.3g of what is allowed, %lld failures\n", argv[2],
         (long long)c->n_calls, (long long)c->n_refused, c->worst, (long long)c->n_failures);
  int code = status || c->n_failures > 0 || c->n_calls == 0;
  planc_status_free(status);
  if (c->device) c->backend->close(c->device);
  if (c->host) planrt_host_backend.close(c->host);
  planrt_user_close(&c->session);
  planc_trace_free(c->session.trace);
  planc_arena_free(&c->session.memory);
  planc_arena_free(&c->memory);
  planc_graph_free(c->graph);
  free(c);
  return code;
}
