/* `planrun profile` between its files: cmd_profile.c has the command line, cmd_profile_measure.c what is measured,
 * cmd_profile_write.c the profile. */
#ifndef PLANRT_CMD_PROFILE_H
#define PLANRT_CMD_PROFILE_H

#include "planrt/planrt.h"
#include "runtime/profile_file.h"
#include "runtime/profile_part.h"

enum { PLANRT_MOST_BATCHES = 64, PLANRT_MOST_LOADS = 16, PLANRT_PATH_ROOM = 4096 };

typedef struct planrt_profiling {
  const char *output;
  planc_graph *graph;
  int32_t n_batches, n_loads;
  int64_t batches[PLANRT_MOST_BATCHES], loads[PLANRT_MOST_LOADS + 1]; /* ppm; the first is 0 */
  int64_t repetitions, most, warm_up_ms, link_bytes_per_s;
  const planrt_backend *backend;
  const char *deviceless; /* the device that is described, or NULL */
  const char *storage;    /* a directory to measure it in, or NULL */
  bool deterministic;
  planrt_device_info info;
  char machine[512];
  const char *name;
  const volatile sig_atomic_t *stop; /* when it is not 0 all ends early, without a failure */
  planrt_kept *kept;                 /* what has been measured */
} planrt_profiling;

static inline bool planrt_profiling_stopped(const planrt_profiling *p) {
  return *p->stop != 0;
}

/* Measures what the pieces that are kept lack, and keeps it. */
planc_status planrt_profiling_measure(planrt_profiling *p);
/* Writes the profile of the pieces, and the device's properties beside it. */
planc_status planrt_profiling_write(const planrt_profiling *p);
/* Where the properties lie beside the profile that goes to `output`; empty where that is standard output. */
planc_status planrt_profiling_properties(const char *output, char out[PLANRT_PATH_ROOM]);
/* Writes the profile of a device that is not there. */
planc_status planrt_profiling_list(const planrt_profiling *p);

#endif
