/* planc: the compiler for GPU memory. This file finds the subcommand; each has a file of its own (cmd_*.c). */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli.h"
#include "planc/version.h"

static const planc_subcommand *const subcommands[] = {
    &planc_cmd_plan, &planc_cmd_check, &planc_cmd_simulate, &planc_cmd_compare, &planc_cmd_show, &planc_cmd_train,
};
enum { N_SUBCOMMANDS = sizeof subcommands / sizeof *subcommands };

static void print_usage(FILE *out) {
  fputs("usage: planc COMMAND [operand ...] [option ...]\n\ncommands:\n", out);
  for (int i = 0; i < N_SUBCOMMANDS; i++) {
    fprintf(out, "  %-10s %s\n", subcommands[i]->line.name, subcommands[i]->line.summary);
  }
  fputs(
      "\n'planc COMMAND --help' tells a command's options.\n"
      "options: --color=auto|always|never (anywhere), --version, --help\n"
      "exit: 0 fits, 1 does not fit or plan not valid, 2 usage, 3 bad input, 4 stale, 5 internal, 6 device\n",
      out);
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

static planc_status run(int argc, char **argv) {
  if (argc < 1) return planc_error(PLANC_USAGE, "no command given; 'planc --help' lists them");
  if (strcmp(argv[0], "--help") == 0 || strcmp(argv[0], "-h") == 0) {
    print_usage(stdout);
    return NULL;
  }
  if (strcmp(argv[0], "--version") == 0) {
    printf("planc %s, plan format %d\n", PLANC_VERSION, PLANC_PLAN_VERSION);
    return NULL;
  }
  for (int i = 0; i < N_SUBCOMMANDS; i++) {
    if (strcmp(argv[0], subcommands[i]->line.name) != 0) continue;
    planc_arguments arguments;
    PLANC_TRY(planc_context(planc_options_parse(&subcommands[i]->line, argc - 1, argv + 1, &arguments), "%s", argv[0]));
    if (arguments.help) {
      planc_options_help("planc", &subcommands[i]->line, stdout);
      return NULL;
    }
    return subcommands[i]->run(&arguments);
  }
  return planc_error(PLANC_USAGE, "unknown command %s; 'planc --help' lists them", argv[0]);
}

int main(int argc, char **argv) {
  bool color = false;
  argc--;
  argv++;
  planc_status status = take_color(&argc, argv, &color);
  if (!status) status = run(argc, argv);
  if (!status && (fflush(stdout) || ferror(stdout)))
    status = planc_error(PLANC_IO, "standard output cannot be written");
  if (!status) return 0;
  fprintf(stderr, "%splanc: %s%s\n", color ? "\033[31m" : "", planc_status_message(status), color ? "\033[0m" : "");
  int code = planc_exit_code(planc_status_code(status));
  planc_status_free(status);
  return code;
}
