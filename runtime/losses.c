/* Losses of an epoch (losses.h). */
#include "runtime/losses.h"

#include <math.h>
#include <stdlib.h>

planc_status planrt_losses_start(planrt_losses *losses, int64_t per_period) {
  losses->per_period = per_period;
  losses->open = calloc((size_t)per_period, sizeof *losses->open);
  return losses->open ? NULL : planc_error(PLANC_OUT_OF_MEMORY, "%lld losses", (long long)per_period);
}

void planrt_losses_begin(planrt_losses *losses) {
  losses->sum = 0;
  losses->n = losses->kept.len = 0;
}

static planc_status close_period(planrt_losses *losses) {
  for (int64_t i = 0; losses->any && i < losses->per_period; i++) {
    if (losses->keeps) VEC_PUSH(&losses->kept, losses->open[i]);
    losses->sum += losses->open[i];
    losses->open[i] = 0;
    losses->n++;
  }
  losses->any = false;
  return NULL;
}

planc_status planrt_losses_add(planrt_losses *losses, int64_t iteration, double part) {
  int64_t period = iteration / losses->per_period;
  if (losses->any && period != losses->period) PLANC_TRY(close_period(losses));
  losses->any = true;
  losses->period = period;
  losses->open[iteration % losses->per_period] += part;
  return NULL;
}

planc_status planrt_losses_end(planrt_losses *losses, double *out_mean) {
  PLANC_TRY(close_period(losses));
  *out_mean = losses->n == 0 ? NAN : losses->sum / (double)losses->n;
  return NULL;
}

void planrt_losses_free(planrt_losses *losses) {
  free(losses->open);
  VEC_FREE(&losses->kept);
}
