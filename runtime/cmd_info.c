/* `planrun info`: backends, devices, versions. */
#include <stdio.h>

#include "planc/plan.h"
#include "planc/version.h"
#include "planrt/planrt.h"
#include "runtime/cli.h"

static const planc_option options[] = {{0}};

static planc_status run(const planc_arguments *arguments) {
  (void)arguments;
  printf("planrun %s, plan format %d\nbackend host: one thread, f32\n", PLANC_VERSION, PLANC_PLAN_VERSION);
  return NULL;
}

const planrt_subcommand planrt_cmd_info = {{"info", "", "backends and versions", options, 0, 0}, run};
