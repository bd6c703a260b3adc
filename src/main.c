/* planc: the compiler for GPU memory. This file lists the subcommands; each has a file of its own (cmd_*.c). */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/cli.h"
#include "program/print.h"

static const prog_subcommand *const subcommands[] = {
    &cli_cmd_plan,  &cli_cmd_colocate, &cli_cmd_check,   &cli_cmd_simulate, &cli_cmd_compare,
    &cli_cmd_show,  &cli_cmd_train,    &cli_cmd_predict, &cli_cmd_update,   &cli_cmd_explain,
    &cli_cmd_bound, &cli_cmd_place,    &cli_cmd_torch,
};

static const prog_program program = {
    .name = "planc",
    .subcommands = subcommands,
    .n_subcommands = sizeof subcommands / sizeof *subcommands,
    .notes =
        "options: --color=auto|always|never (anywhere), --version, --help\n"
        "exit: 0 fits, 1 does not fit or plan not valid, 2 usage, 3 bad input, 4 stale, 5 internal, 6 device, 7 "
        "unchanged\n",
};

static planc_status take_color(int *argc, char **argv, bool *out_color);

int main(int argc, char **argv) {
  bool color = false;
  argc--;
  argv++;
  planc_status status = take_color(&argc, argv, &color);
  if (!status) status = prog_run(&program, argc, argv, stdout);
  if (!status) return 0;
  if (color) fputs("\033[31m", stderr);
  fputs("planc: ", stderr);
  prog_print_text(stderr, planc_status_message(status));
  fputs(color ? "\033[0m\n" : "\n", stderr);
  int code = planc_exit_code(planc_status_code(status));
  planc_status_free(status);
  return code;
}

/* Takes --color out of the arguments; true when messages are to be coloured. */
static planc_status take_color(int *argc, char **argv, bool *out_color) {
  const char *no_color = getenv("NO_COLOR"); /* an empty one says nothing (no-color.org) */
  *out_color = isatty(STDERR_FILENO) && !(no_color && *no_color);
  int kept = 0;
  for (int i = 0; i < *argc; i++) {
    if (strncmp(argv[i], "--color=", 8) != 0) {
      argv[kept++] = argv[i];
      continue;
    }
    const char *when = argv[i] + 8;
    if (strcmp(when, "always") == 0) {
      *out_color = true;
    } else if (strcmp(when, "never") == 0) {
      *out_color = false;
    } else if (strcmp(when, "auto") != 0) {
      return planc_error(PLANC_USAGE, "--color takes auto, always or never");
    }
  }
  *argc = kept;
  return NULL;
}
