#include "tests/support/rival.h"

#include <check.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/forward.h"

enum { GUARD = 256, UNTOUCHED = 0xff }; /* bytes of NaNs, so that reading them shows */

/* --- A call in memory of its own ---------------------------------------------------------------------------------- */

/* The pieces of a rival: operands, then the workspace. */
typedef struct piece {
  const rt_operand *source; /* NULL: the workspace */
  rt_operand *copy;
  int64_t bytes;
  size_t at;
} piece;

static void add_pieces(const rt_operand *sources, rt_operand *copies, int32_t count, piece *pieces, int *n) {
  for (int32_t k = 0; k < count; k++) pieces[(*n)++] = (piece){&sources[k], &copies[k], sources[k].bytes, 0};
}

/* Lays the pieces out in the `turn`-th way: piece `turn` - 1, or for 0 the workspace, ends at a page that cannot be
 * touched, and distances vary by multiples of 256. Inputs and what is added to are copies of `one`'s. */
static void place(const one_call *one, const rt_variant *variant, int turn, rival *r) {
  const rt_call *call = &one->call;
  *r = (rival){.call = *call};
  r->call.in = r->in, r->call.out = r->out, r->call.effects = r->effects;
  r->call.algorithm = variant->algorithm;
  r->call.workspace_bytes = variant->workspace_bytes;
  r->call.handle = NULL;
  piece pieces[2 * RIVAL_MAX_OPERANDS + RIVAL_MAX_EFFECTS + 1];
  int n = 0;
  add_pieces(call->in, r->in, call->n_in, pieces, &n);
  add_pieces(call->out, r->out, call->n_out, pieces, &n);
  add_pieces(call->effects, r->effects, call->n_effects, pieces, &n);
  pieces[n++] = (piece){.bytes = variant->workspace_bytes};
  size_t end = 0;
  for (int i = 0; i < n; i++) {
    piece *next = &pieces[(i + turn) % n];
    next->at = (end + GUARD + 255) / 256 * 256 + 256 * (size_t)(turn * i);
    end = next->at + (size_t)next->bytes;
  }
  ok(rt_block_new((int64_t)((end + 255) / 256 * 256), "a rival", &r->block));
  memset(r->block.data, UNTOUCHED, (size_t)r->block.bytes);
  for (int i = 0; i < n - 1; i++) {
    char *data = pieces[i].source->data ? r->block.data + pieces[i].at : NULL;
    *pieces[i].copy = *pieces[i].source;
    pieces[i].copy->data = data;
    if (data) memcpy(data, pieces[i].source->data, (size_t)pieces[i].bytes);
  }
  r->call.workspace = r->block.data + pieces[n - 1].at;
  ok(rt_host_backend.prepare(one->device, &r->call));
}

static void skip(const rt_operand *operands, int32_t count, const rival *r, char *touched) {
  for (int32_t i = 0; i < count; i++)
    if (operands[i].data) memset(touched + ((char *)operands[i].data - r->block.data), 1, (size_t)operands[i].bytes);
}

static void assert_contained(const one_call *one, const rival *r) {
  char *touched = calloc(1, (size_t)r->block.bytes);
  ck_assert(touched);
  skip(r->in, r->call.n_in, r, touched);
  skip(r->out, r->call.n_out, r, touched);
  skip(r->effects, r->call.n_effects, r, touched);
  memset(touched + ((char *)r->call.workspace - r->block.data), 1, (size_t)r->call.workspace_bytes);
  int64_t i = 0;
  while (i < r->block.bytes && (touched[i] || (unsigned char)r->block.data[i] == UNTOUCHED)) i++;
  ck_assert_msg(i == r->block.bytes, "%s %s: byte %ld of %ld is touched", one->call.op->type, r->call.algorithm,
                (long)i, (long)r->block.bytes);
  ok(rt_block_check(&r->block, "a rival"));
  for (int32_t k = 0; k < r->call.n_in; k++)
    ck_assert_mem_eq(r->in[k].data, one->call.in[k].data, (size_t)r->in[k].bytes);
  free(touched);
}

/* --- Comparing ---------------------------------------------------------------------------------------------------- */

typedef struct launching {
  rival *r;
  const one_call *one;
  rt_launch launch;
} launching;

static void *launch_rival(void *argument) {
  launching *l = argument;
  return rt_host_backend.launch(l->one->device, 0, &l->r->call, &l->launch, NULL);
}

void rival_assert_same_bits(const rt_operand *a, const rt_operand *b, int32_t count) {
  for (int32_t k = 0; k < count; k++)
    if (a[k].data) ck_assert_mem_eq(a[k].data, b[k].data, (size_t)a[k].bytes);
}

void rival_run(const one_call *one, const rt_variant *variant, const rt_launch *launch, rival *r) {
  rival others[3];
  place(one, variant, 0, r);
  for (int turn = 1; turn <= 3; turn++) place(one, variant, turn, &others[turn - 1]);
  launching all[] = {
      {r, one, *launch}, {&others[0], one, *launch}, {&others[1], one, *launch}, {&others[2], one, *launch}};
  pthread_t thread;
  void *status;
  ok(launch_rival(&all[0]));
  ok(launch_rival(&all[1]));
  ck_assert_int_eq(pthread_create(&thread, NULL, launch_rival, &all[2]), 0);
  ok(launch_rival(&all[3]));
  pthread_join(thread, &status);
  ok(status);
  assert_contained(one, r);
  for (int i = 0; i < 3; i++) {
    assert_contained(one, &others[i]);
    rival_assert_same_bits(r->out, others[i].out, r->call.n_out);
    rival_assert_same_bits(r->effects, others[i].effects, r->call.n_effects);
    rt_block_free(&others[i].block);
  }
}

static void absolute(const rt_operand *operands, int32_t count) {
  for (int32_t k = 0; k < count; k++)
    for (int64_t e = 0; e < operands[k].elements; e++)
      ((float *)operands[k].data)[e] = fabsf(((float *)operands[k].data)[e]);
}

void rival_set_results(one_call *one) {
  for (int32_t k = 0; k < one->call.n_out; k++) one_call_fill(&one->call.out[k], 5, 2.0F, 2.0F);
  for (int32_t k = 0; k < one->call.n_effects; k++)
    if (one->call.effects[k].data) one_call_fill(&one->call.effects[k], 6 + (uint64_t)k, 0.5F, 1.5F);
}

/* What out[0] would be if no products cancelled. */
typedef struct magnitudes {
  float *sums;
  float largest;
} magnitudes;

static magnitudes magnitudes_of(one_call *one, const rt_launch *launch) {
  rt_call *call = &one->call;
  magnitudes m = {.sums = malloc((size_t)call->out[0].bytes)};
  ck_assert(m.sums);
  float *saved[RIVAL_MAX_OPERANDS];
  for (int32_t k = 0; k < call->n_in; k++) {
    saved[k] = malloc((size_t)call->in[k].bytes);
    ck_assert(saved[k]);
    memcpy(saved[k], call->in[k].data, (size_t)call->in[k].bytes);
  }
  absolute(call->in, call->n_in);
  rival_set_results(one);
  one_call_run(one, launch);
  memcpy(m.sums, call->out[0].data, (size_t)call->out[0].bytes);
  for (int64_t e = 0; e < call->out[0].elements; e++)
    if (m.sums[e] > m.largest) m.largest = m.sums[e];
  for (int32_t k = 0; k < call->n_in; k++) {
    memcpy(call->in[k].data, saved[k], (size_t)call->in[k].bytes);
    free(saved[k]);
  }
  return m;
}

static double allowed(const magnitudes *m, rival_allowance by, const char *algorithm, int64_t e, double want) {
  if (by == RIVAL_VALUES) return 1e-4 * (fabs(want) > 1 ? fabs(want) : 1);
  if (strcmp(algorithm, "dnnl-winograd") == 0) return 2e-5 * (double)m->largest;
  return 2e-6 * (double)m->sums[e] + 1e-6;
}

static void assert_near(const rt_operand *got, const rt_operand *want, int32_t count, const magnitudes *m,
                        rival_allowance by, const char *algorithm) {
  for (int32_t k = 0; k < count; k++)
    for (int64_t e = 0; want[k].data && e < want[k].elements; e++) {
      double g = (double)((const float *)got[k].data)[e], w = (double)((const float *)want[k].data)[e];
      if (fabs(g - w) <= allowed(m, by, algorithm, e, w)) continue;
      ck_abort_msg("%s: result %d[%ld]: %.9g, should be %.9g", algorithm, k, (long)e, g, w);
    }
}

void rival_assert_values(const rt_operand *got, const rt_operand *want, int32_t count) {
  assert_near(got, want, count, NULL, RIVAL_VALUES, "values");
}

static void too_small(one_call *one, const rt_variant *variant) {
  rt_call call = one->call;
  char need[32], has[32];
  if (variant->workspace_bytes == 0) return;
  call.algorithm = variant->algorithm;
  call.workspace = NULL;
  call.workspace_bytes = variant->workspace_bytes - 1;
  planc_status status = rt_host_backend.prepare(one->device, &call);
  ck_assert_int_eq(planc_status_code(status), PLANC_DEVICE);
  snprintf(need, sizeof need, "of %ld bytes", (long)variant->workspace_bytes);
  snprintf(has, sizeof has, "has %ld", (long)variant->workspace_bytes - 1);
  ck_assert_ptr_nonnull(strstr(planc_status_message(status), need));
  ck_assert_ptr_nonnull(strstr(planc_status_message(status), has));
  planc_status_free(status);
}

int32_t rival_variants(one_call *one, rt_variant *out) {
  rt_variant adding[RT_MAX_VARIANTS];
  int32_t count, n_adding;
  rt_call call = one->call;
  rt_operand results[RIVAL_MAX_OPERANDS];
  ok(rt_host_backend.variants(one->device, &call, out, &count));
  for (int32_t k = 0; k < call.n_out; k++) {
    results[k] = call.out[k];
    results[k].data = NULL;
    results[k].accumulate = !results[k].accumulate;
  }
  call.out = results;
  ok(rt_host_backend.variants(one->device, &call, adding, &n_adding));
  ck_assert_int_eq(count, n_adding);
  for (int32_t v = 0; v < count; v++) {
    ck_assert_str_eq(out[v].algorithm, adding[v].algorithm);
    ck_assert_int_eq(out[v].workspace_bytes, adding[v].workspace_bytes);
    ck_assert(v == 0 || out[v - 1].workspace_bytes <= out[v].workspace_bytes);
    ck_assert(out[v].deterministic);
  }
  return count;
}

static void count_algorithm(rival_seen *s, const char *algorithm) {
  *(strcmp(algorithm, "dnnl-direct") == 0     ? &s->direct
    : strcmp(algorithm, "dnnl-gemm") == 0     ? &s->gemm
    : strcmp(algorithm, "dnnl-winograd") == 0 ? &s->winograd
    : strcmp(algorithm, "plain") == 0         ? &s->plain
                                              : &s->other) += 1;
}

void rival_compare(one_call *one, uint32_t adds, rival_allowance by, rival_seen *s) {
  rt_variant variants[RT_MAX_VARIANTS];
  rt_launch launch = one_call_launch();
  for (int32_t k = 0; k < one->call.n_out; k++) one->call.out[k].accumulate = adds >> k & 1;
  int32_t count = rival_variants(one, variants);
  magnitudes m = by == RIVAL_PRODUCTS ? magnitudes_of(one, &launch) : (magnitudes){0};
  for (int32_t v = 0; v < count; v++) {
    rival r;
    rival_set_results(one);
    rival_run(one, &variants[v], &launch, &r);
    rival_set_results(one);
    one_call_run(one, &launch);
    assert_near(r.out, one->call.out, one->call.n_out, &m, by, variants[v].algorithm);
    assert_near(r.effects, one->call.effects, one->call.n_effects, &m, by, variants[v].algorithm);
    rt_block_free(&r.block);
    too_small(one, &variants[v]);
    count_algorithm(s, variants[v].algorithm);
  }
  free(m.sums);
}
