/* Labels with an integer each, as some sections of a profile have them: {"relu": 830000, "conv2d": 910000}. */
#ifndef PLANC_COST_LABELS_H
#define PLANC_COST_LABELS_H

#include "cost/json.h"
#include "util/arena.h"

typedef struct pl_labelled {
  const char *label;
  int64_t value;
} pl_labelled;

typedef struct pl_labels {
  int32_t n;
  const pl_labelled *of; /* by label, ascending */
} pl_labels;

/* Reads an object whose keys are labels, each once, and whose values are from `min` to `max`. */
planc_status pl_labels_read(const pl_json *at, int64_t min, int64_t max, pl_arena *arena, pl_labels *out);
planc_status pl_labels_copy(pl_arena *arena, const pl_labels *from, pl_labels *out);
/* All labels of both, with the larger value where both have one. `a` and `b` are borrowed, and may be `out`. */
planc_status pl_labels_union(pl_arena *arena, const pl_labels *a, const pl_labels *b, pl_labels *out);
/* NULL: there is none of that label. */
const pl_labelled *pl_labels_find(const pl_labels *labels, const char *label);
/* Of all values; INT64_MAX where it is beyond. */
int64_t pl_labels_sum(const pl_labels *labels);

#endif
