/* `planrun profile` between its files: cmd_profile.c has the command line, cmd_profile_measure.c what is measured,
 * cmd_profile_write.c the profile. */
#ifndef PLANRT_CMD_PROFILE_H
#define PLANRT_CMD_PROFILE_H

#include "planrt/planrt.h"
#include "runtime/profile/profile_file.h"
#include "runtime/profile/profile_part.h"

enum { RUN_MAX_BATCHES = 64, RUN_MAX_LOADS = 16, RUN_PATH_ROOM = 4096 };

typedef struct run_profiling {
  const char *output;
  planc_graph *graph;
  int32_t n_batches, n_unmeasured, n_loads;
  int64_t batches[RUN_MAX_BATCHES], unmeasured[RUN_MAX_BATCHES]; /* of the latter workspaces are listed */
  int64_t loads[RUN_MAX_LOADS + 1];                              /* ppm; the first is 0 */
  int64_t repetitions, most, warm_up_ms, link_bytes_per_s;
  const planrt_backend *backend;
  const char *deviceless; /* the device that is described, or NULL */
  const char *storage;    /* a directory to measure it in, or NULL */
  bool deterministic;
  rt_device_info info;
  char machine[512];
  const char *name;
  const volatile sig_atomic_t *stop; /* when it is not 0 all ends early, without a failure */
  rt_kept *kept;                     /* what has been measured */
} run_profiling;

static inline bool run_profiling_stopped(const run_profiling *p) {
  return *p->stop != 0;
}

/* Measures what the pieces that are kept lack, and keeps it. */
planc_status run_profiling_measure(run_profiling *p);
/* Writes the profile of the pieces, and the device's properties beside it. *out_written is false where it was stopped
 * before both were there. */
planc_status run_profiling_write(const run_profiling *p, bool *out_written);
/* Where the properties lie beside the profile that goes to `output`; empty where that is standard output. */
planc_status run_profiling_properties(const char *output, char out[RUN_PATH_ROOM]);
/* Writes the profile of a device that is not there. *out_written is false where it was stopped before. */
planc_status run_profiling_list(const run_profiling *p, bool *out_written);

#endif
