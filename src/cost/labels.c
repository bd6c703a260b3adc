/* Labels with an integer each (labels.h). */
#include "cost/labels.h"

#include <stdlib.h>
#include <string.h>

#include "util/label.h"
#include "util/math.h"

static planc_status read_one(const pl_json *at, int64_t min, int64_t max, pl_arena *arena, pl_labelled *out);
static int by_label(const void *a, const void *b);

planc_status pl_labels_read(const pl_json *at, int64_t min, int64_t max, pl_arena *arena, pl_labels *out) {
  pl_labelled *of;
  int32_t n = cJSON_GetArraySize(at->value);
  if (!cJSON_IsObject(at->value)) return pl_json_error(at, "must be an object");
  PLANC_TRY(PL_NEW(arena, &of, n));
  for (pl_json item = pl_json_first(at); item.value; pl_json_next(&item))
    PLANC_TRY(read_one(&item, min, max, arena, &of[item.index]));
  if (n > 0) qsort(of, (size_t)n, sizeof *of, by_label);
  for (int32_t i = 1; i < n; i++)
    if (by_label(&of[i - 1], &of[i]) == 0) return pl_json_error(at, "the key %s stands twice", of[i].label);
  *out = (pl_labels){n, of};
  return NULL;
}

planc_status pl_labels_copy(pl_arena *arena, const pl_labels *from, pl_labels *out) {
  pl_labelled *of;
  PLANC_TRY(PL_NEW(arena, &of, from->n));
  for (int32_t i = 0; i < from->n; i++) {
    of[i].value = from->of[i].value;
    PLANC_TRY(pl_arena_strndup(arena, from->of[i].label, strlen(from->of[i].label), &of[i].label));
  }
  *out = (pl_labels){from->n, of};
  return NULL;
}

planc_status pl_labels_union(pl_arena *arena, const pl_labels *a, const pl_labels *b, pl_labels *out) {
  pl_labelled *of;
  int32_t n = 0, i = 0, k = 0;
  PLANC_TRY(PL_NEW(arena, &of, (int64_t)a->n + b->n));
  while (i < a->n || k < b->n) {
    int order = i == a->n ? 1 : k == b->n ? -1 : by_label(&a->of[i], &b->of[k]);
    const pl_labelled *first = order <= 0 ? &a->of[i] : &b->of[k];
    of[n] = *first;
    if (order == 0 && b->of[k].value > first->value) of[n].value = b->of[k].value;
    i += order <= 0;
    k += order >= 0;
    n++;
  }
  *out = (pl_labels){n, of};
  return NULL;
}

const pl_labelled *pl_labels_find(const pl_labels *labels, const char *label) {
  const pl_labelled wanted = {.label = label};
  if (labels->n == 0) return NULL;
  return bsearch(&wanted, labels->of, (size_t)labels->n, sizeof *labels->of, by_label);
}

int64_t pl_labels_sum(const pl_labels *labels) {
  int64_t sum = 0;
  for (int32_t i = 0; i < labels->n; i++) sum = pl_add_saturate(sum, labels->of[i].value);
  return sum;
}

static int by_label(const void *a, const void *b) {
  const pl_labelled *x = a, *y = b;
  return strcmp(x->label, y->label);
}

static planc_status read_one(const pl_json *at, int64_t min, int64_t max, pl_arena *arena, pl_labelled *out) {
  const char *fault = pl_label_fault(at->name);
  if (fault) return pl_json_error(at, "the key %s", fault);
  PLANC_TRY(pl_json_int(at, min, max, &out->value));
  return pl_arena_strndup(arena, at->name, strlen(at->name), &out->label);
}
