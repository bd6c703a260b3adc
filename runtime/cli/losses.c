/* Losses of an epoch (losses.h). */
#include "runtime/cli/losses.h"

#include <math.h>
#include <stdlib.h>

void run_losses_start(run_losses *losses, bool keeps) {
  *losses = (run_losses){.keeps = keeps, .mean = NAN, .not_finite = -1};
}

planc_status run_losses_plan(run_losses *losses, int64_t first, int64_t per_period) {
  double *open = calloc((size_t)per_period, sizeof *open);
  if (!open) return planc_error(PLANC_OUT_OF_MEMORY, "%lld losses", (long long)per_period);
  free(losses->open);
  losses->open = open;
  losses->first = first;
  losses->per_period = per_period;
  return NULL;
}

void run_losses_begin(run_losses *losses) {
  losses->begins = true;
}

static planc_status close_period(run_losses *losses, int64_t end);

planc_status run_losses_add(run_losses *losses, int64_t iteration, double part) {
  int64_t period = (iteration - losses->first) / losses->per_period;
  if (losses->any && period != losses->period) PLANC_TRY(close_period(losses, INT64_MAX));
  losses->any = true;
  losses->period = period;
  losses->open[(iteration - losses->first) % losses->per_period] += part;
  return NULL;
}

planc_status run_losses_end(run_losses *losses, int64_t end) {
  PLANC_TRY(close_period(losses, end));
  losses->mean = losses->n == 0 ? NAN : losses->sum / (double)losses->n;
  return NULL;
}

void run_losses_free(run_losses *losses) {
  free(losses->open);
  VEC_FREE(&losses->kept);
}

static void drop_epoch(run_losses *losses) {
  losses->sum = 0;
  losses->n = losses->kept.len = 0;
  losses->begins = false;
}

static void look_at(run_losses *losses, int64_t iteration, double loss) {
  if (isfinite(loss) || losses->not_finite >= 0) return;
  losses->not_finite = iteration;
  losses->not_finite_was = loss;
}

/* Its iterations before `end` count. */
static planc_status close_period(run_losses *losses, int64_t end) {
  int64_t first = losses->first + losses->period * losses->per_period;
  if (losses->any && losses->begins && first < end) drop_epoch(losses);
  for (int64_t i = 0; losses->any && i < losses->per_period && first + i < end; i++) {
    if (losses->keeps) VEC_PUSH(&losses->kept, losses->open[i]);
    look_at(losses, first + i, losses->open[i]);
    losses->sum += losses->open[i];
    losses->open[i] = 0;
    losses->n++;
  }
  losses->any = false;
  return NULL;
}
