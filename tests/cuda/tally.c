/* Counting by kind of call (tally.h). */
#include "tests/cuda/tally.h"

#include <cjson/cJSON.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* --- Kinds -------------------------------------------------------------------------------------------------------- */

static void add_dtypes(char *to, const char *before, const rt_operand *operands, int32_t count) {
  for (int32_t i = 0; i < count; i++) {
    size_t length = strlen(to);
    snprintf(to + length, TALLY_NAME - length, "%s%s", i == 0 ? before : ",", planc_dtype_name(operands[i].dtype));
  }
}

static tally_kind kind_of(const rt_call *call) {
  tally_kind of = {.type = planc_trace_type(call->trace, call->instance),
                   .layout = call->graph->layout == PLANC_LAYOUT_NHWC ? "NHWC" : "NCHW",
                   .tf32 = planc_op_int(call->op, "tf32", 0, 0) != 0};
  add_dtypes(of.dtypes, "", call->in, call->n_in);
  add_dtypes(of.dtypes, ">", call->out, call->n_out);
  add_dtypes(of.dtypes, ">", call->effects, call->n_effects);
  for (int32_t o = 0; o < call->n_out; o++) {
    of.accumulates |= call->out[o].accumulate;
    for (int32_t i = 0; i < call->n_in; i++) of.in_place |= call->in[i].data == call->out[o].data;
  }
  return of;
}

static bool same_kind(const tally_kind *a, const tally_kind *b) {
  return strcmp(a->type, b->type) == 0 && strcmp(a->dtypes, b->dtypes) == 0 && a->accumulates == b->accumulates &&
         a->in_place == b->in_place && a->tf32 == b->tf32;
}

tally_kind *tally_of(tally *all, const rt_call *call) {
  tally_kind of = kind_of(call);
  for (int32_t k = 0; k < all->n; k++)
    if (same_kind(&all->kinds[k], &of)) return &all->kinds[k];
  if (all->n == all->room) {
    int32_t room = all->room ? 2 * all->room : 64;
    tally_kind *grown = realloc(all->kinds, (size_t)room * sizeof *grown);
    if (!grown) return NULL;
    all->kinds = grown;
    all->room = room;
  }
  all->kinds[all->n] = of;
  return &all->kinds[all->n++];
}

tally_kind tally_sum(const tally *all) {
  tally_kind sum = {0};
  for (int32_t k = 0; k < all->n; k++) {
    const tally_kind *of = &all->kinds[k];
    sum.calls += of->calls;
    sum.algorithms += of->algorithms;
    sum.left_out += of->left_out;
    sum.failures += of->failures;
    sum.not_run += of->not_run;
    sum.worst.error = fmax(sum.worst.error, of->worst.error);
    sum.worst.allowed = fmax(sum.worst.allowed, of->worst.allowed);
  }
  return sum;
}

void tally_free(tally *all) {
  free(all->kinds);
  *all = (tally){0};
}

/* --- Printing ----------------------------------------------------------------------------------------------------- */

static void add_counts(cJSON *to, const tally_kind *of) {
  cJSON_AddNumberToObject(to, "calls", (double)of->calls);
  cJSON_AddNumberToObject(to, "algorithms", (double)of->algorithms);
  cJSON_AddNumberToObject(to, "left_out", (double)of->left_out);
  cJSON_AddNumberToObject(to, "failures", (double)of->failures);
  cJSON_AddNumberToObject(to, "not_run", (double)of->not_run);
  /* JSON has no infinity: cJSON writes null. */
  cJSON_AddNumberToObject(to, "error", of->worst.error);
  cJSON_AddNumberToObject(to, "of_allowed", of->worst.allowed);
}

static void print_json(const tally *all, const char *graph) {
  cJSON *root = cJSON_CreateObject();
  cJSON_AddStringToObject(root, "graph", graph);
  tally_kind sum = tally_sum(all);
  add_counts(root, &sum);
  cJSON *kinds = cJSON_AddArrayToObject(root, "kinds");
  for (int32_t k = 0; k < all->n; k++) {
    const tally_kind *of = &all->kinds[k];
    cJSON *object = cJSON_CreateObject();
    cJSON_AddStringToObject(object, "type", of->type);
    cJSON_AddStringToObject(object, "layout", of->layout);
    cJSON_AddStringToObject(object, "dtypes", of->dtypes);
    cJSON_AddBoolToObject(object, "accumulates", of->accumulates);
    cJSON_AddBoolToObject(object, "in_place", of->in_place);
    cJSON_AddBoolToObject(object, "tf32", of->tf32);
    add_counts(object, of);
    cJSON_AddItemToArray(kinds, object);
  }
  char *text = cJSON_PrintUnformatted(root);
  cJSON_Delete(root);
  printf("%s\n", text ? text : "{}");
  cJSON_free(text);
}

void tally_print(const tally *all, const char *graph, bool json) {
  if (json) {
    print_json(all, graph);
    return;
  }
  tally_kind sum = tally_sum(all);
  for (int32_t k = 0; k < all->n; k++) {
    const tally_kind *of = &all->kinds[k];
    printf("%s %s %s%s%s%s: %lld calls, %lld algorithms, %lld left out, error %.3g, %.3g of what is allowed\n",
           of->type, of->layout, of->dtypes, of->accumulates ? " accumulating" : "", of->in_place ? " in place" : "",
           of->tf32 ? " TF32" : "", (long long)of->calls, (long long)of->algorithms, (long long)of->left_out,
           of->worst.error, of->worst.allowed);
  }
  printf("%s: %lld calls compared, %lld algorithms, %lld left out, worst %.3g of what is allowed, %lld failures\n",
         graph, (long long)sum.calls, (long long)sum.algorithms, (long long)sum.left_out, sum.worst.allowed,
         (long long)sum.failures);
}
