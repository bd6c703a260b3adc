/* Labels with an integer each, as some sections of a profile have them: {"relu": 830000, "conv2d": 910000}. */
#ifndef PLANC_COST_LABELS_H
#define PLANC_COST_LABELS_H

#include "cost/json.h"
#include "util/arena.h"

typedef struct planc_labelled {
  const char *label;
  int64_t value;
} planc_labelled;

typedef struct planc_labels {
  int32_t n;
  const planc_labelled *of; /* by label, ascending */
} planc_labels;

/* Reads an object whose keys are labels, each once, and whose values are from `min` to `max`. */
planc_status planc_labels_read(const planc_json *at, int64_t min, int64_t max, planc_arena *arena, planc_labels *out);
planc_status planc_labels_copy(planc_arena *arena, const planc_labels *from, planc_labels *out);
/* NULL: there is none of that label. */
const planc_labelled *planc_labels_find(const planc_labels *labels, const char *label);
/* Of all values; INT64_MAX where it is beyond. */
int64_t planc_labels_sum(const planc_labels *labels);

#endif
