/* What the subcommands of planrun share. */
#ifndef PLANRT_PLANRUN_H
#define PLANRT_PLANRUN_H

#include "planc/status.h"
#include "program/program.h"

extern const prog_subcommand run_cmd_exec, run_cmd_profile, run_cmd_info;

/* An option that is a rate, "0.2GB/s", in bytes per second; 0 where it is not given. */
planc_status run_option_rate(const prog_arguments *arguments, const char *name, int64_t *out);

#endif
