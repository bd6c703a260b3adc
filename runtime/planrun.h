/* What the subcommands of planrun share. */
#ifndef PLANRT_PLANRUN_H
#define PLANRT_PLANRUN_H

#include "planc/status.h"
#include "util/program.h"

extern const pl_subcommand rt_cmd_exec, rt_cmd_profile, rt_cmd_info;

/* An option that is a rate, "0.2GB/s", in bytes per second; 0 where it is not given. */
planc_status rt_option_rate(const pl_arguments *arguments, const char *name, int64_t *out);

#endif
