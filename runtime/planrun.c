/* planrun: the executor's program. This file lists the subcommands; each has a file of its own (cli/cmd_*.c). */
#include "runtime/cli/planrun.h"

#include <stdio.h>

#include "program/print.h"

static const prog_subcommand *const subcommands[] = {&run_cmd_exec, &run_cmd_profile, &run_cmd_info};
static const prog_program program = {
    .name = "planrun",
    .subcommands = subcommands,
    .n_subcommands = sizeof subcommands / sizeof *subcommands,
    .notes =
        "options: --version, --help\n"
        "exit: 0 done, 1 plan not valid or not as the reference, 2 usage, 3 bad input, 4 stale, 5 internal, 6 device, "
        "8 a job failed\n",
};

int main(int argc, char **argv) {
  planc_status status = prog_run(&program, argc - 1, argv + 1, stdout);
  if (!status) return 0;
  prog_print_line(stderr, "planrun: %s", planc_status_message(status));
  int code = planc_exit_code(planc_status_code(status));
  planc_status_free(status);
  return code;
}
