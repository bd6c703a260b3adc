/* Who waits for a plan sees what is asked, on a terminal, and may end it with what was found by then (cli.h). */
#include "cli/cli.h"
#include "program/interrupts.h"
#include "program/progress.h"
#include "util/math.h"

static void show(void *user, const char *policy, int64_t done_ppm, int64_t fastest_ns) {
  (void)user;
  char done[PL_SIZE_TEXT] = "", time[PL_SIZE_TEXT];
  if (done_ppm > 0) snprintf(done, sizeof done, " %lld %%", (long long)done_ppm / (PL_PPM / 100));
  if (fastest_ns > 0)
    prog_progress(stderr, "asking %s%s; the fastest so far takes %s", policy, done, pl_time_format(fastest_ns, time));
  else
    prog_progress(stderr, "asking %s%s", policy, done);
}

static bool goes_on(void *user) {
  (void)user;
  return !prog_interrupted;
}

const planc_watch *cli_watch(void) {
  static const planc_watch watch = {.asks = show, .goes_on = goes_on};
  prog_interrupts_catch("planc: ending with the best plan found so far; again to end at once\n", NULL);
  return &watch;
}

planc_status cli_watch_end(planc_status status) {
  prog_progress_end(stderr);
  return status;
}
