/* Prints how many calls of CUDA that allocate, register, map or free memory a run of `planrt_run` makes on the emulated
 * device: first those of making the session, then those of 1 and of 5 periods.
 *
 * usage: count_allocations PLAN [graph] */
#define _GNU_SOURCE /* RTLD_DEFAULT */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "planrt/planrt.h"

typedef int64_t (*counter)(void);

/* The emulator's, in the plug-in. */
static counter find_counter(void) {
  char path[4096];
  counter count = NULL;
  const char *folder = getenv("PLANRT_PLUGINS");
  if (!folder || snprintf(path, sizeof path, "%s/libplanrt-cuda.so", folder) >= (int)sizeof path) return NULL;
  void *library = dlopen(path, RTLD_NOW | RTLD_NOLOAD);
  void *symbol = library ? dlsym(library, "emulator_allocations") : NULL;
  memcpy(&count, &symbol, sizeof count);
  return count;
}

static planc_status count(const char *path, bool replay) {
  planrt_options options = {.concurrent = true, .replay = replay};
  planrt_session *session;
  planc_plan *plan;
  PLANC_TRY(planrt_backend_find("cuda", &options.backend));
  counter so_far = find_counter();
  if (!so_far) return planc_error(PLANC_DEVICE, "the plug-in is not the emulated one");
  PLANC_TRY(planc_plan_read(path, &plan));
  PLANC_TRY(planrt_session_new(plan, &options, &session));
  PLANC_TRY(planrt_init(session));
  int64_t made = so_far();
  PLANC_TRY(planrt_run(session, 1));
  int64_t once = so_far();
  PLANC_TRY(planrt_run(session, 5));
  printf("%lld %lld %lld\n", (long long)made, (long long)(once - made), (long long)(so_far() - once));
  planrt_session_free(session);
  planc_plan_free(plan);
  return NULL;
}

int main(int argc, char **argv) {
  planc_status status = argc < 2 ? planc_error(PLANC_USAGE, "no plan") : count(argv[1], argc > 2);
  if (!status) return 0;
  fprintf(stderr, "count_allocations: %s\n", planc_status_message(status));
  planc_status_free(status);
  return 1;
}
