/* What the subcommands of planrun share. */
#ifndef PLANRT_PLANRUN_H
#define PLANRT_PLANRUN_H

#include <signal.h>

#include "planc/status.h"
#include "program/program.h"

extern const prog_subcommand run_cmd_exec, run_cmd_profile, run_cmd_info;

/* An option that is a rate, "0.2GB/s", in bytes per second; 0 where it is not given. */
planc_status run_option_rate(const prog_arguments *arguments, const char *name, int64_t *out);

/* The signal that came; 0: none. */
extern volatile sig_atomic_t run_interrupted;
/* From here on the first SIGINT or SIGTERM is kept and answered with `told`, and the second one ends the program,
 * behind `at_once` (NULL: nothing), which a signal handler may call. One that is ignored stays so. */
void run_interrupts_catch(const char *told, void (*at_once)(void));
/* Where a signal came the program ends by it, once all is put away: who waits for it is to see that. */
void run_interrupts_end(void);

#endif
