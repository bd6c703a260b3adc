/* `planrun info`: backends, libraries, versions. */
#include <stdio.h>

#include "planc/plan.h"
#include "planc/version.h"
#include "planrt/planrt.h"
#include "runtime/cli.h"

static const planc_option options[] = {{"json", 0, NULL, "one line of JSON"}, {0}};

static planc_status run(const planc_arguments *arguments) {
  if (planc_option_given(arguments, "json"))
    printf(
        "{\"planrun\":\"info/1\",\"version\":\"%s\",\"plan_format\":%d,"
        "\"backends\":[{\"name\":\"host\",\"dtype\":\"f32\",\"library\":\"%s\"}]}\n",
        PLANC_VERSION, PLANC_PLAN_VERSION, planrt_host_library());
  else
    printf("planrun %s, plan format %d\nbackend host: f32, %s\n", PLANC_VERSION, PLANC_PLAN_VERSION,
           planrt_host_library());
  return NULL;
}

const planrt_subcommand planrt_cmd_info = {{"info", "", "backends and versions", options, 0, 0}, run};
