/* planrun: the executor's program. This file finds the subcommand; each has a file of its own (cmd_*.c). */
#include <stdio.h>
#include <string.h>

#include "planc/plan.h"
#include "planc/version.h"
#include "planrt/planrt.h"
#include "runtime/cli.h"
#include "util/size.h"

static const planrt_subcommand *const subcommands[] = {&planrt_cmd_exec, &planrt_cmd_profile, &planrt_cmd_info};
enum { N_SUBCOMMANDS = sizeof subcommands / sizeof *subcommands };

planc_status planrt_option_rate(const planc_arguments *arguments, const char *name, int64_t *out) {
  const char *text = planc_option_value(arguments, name);
  size_t length = text ? strlen(text) : 0;
  char size[PLANC_SIZE_TEXT];
  *out = 0;
  if (!text) return NULL;
  if (length < 3 || length - 2 >= sizeof size || strcmp(text + length - 2, "/s") != 0)
    return planc_error(PLANC_USAGE, "--%s takes a rate such as 0.2GB/s, not %s", name, text);
  memcpy(size, text, length - 2);
  size[length - 2] = 0;
  PLANC_TRY(planc_context(planc_size_parse(size, out), "--%s", name));
  return *out > 0 ? NULL : planc_error(PLANC_USAGE, "--%s takes a rate above 0", name);
}

static void print_usage(void) {
  printf("usage: planrun COMMAND [operand ...] [option ...]\n\ncommands:\n");
  for (int i = 0; i < N_SUBCOMMANDS; i++)
    printf("  %-10s %s\n", subcommands[i]->line.name, subcommands[i]->line.summary);
  printf(
      "\n'planrun COMMAND --help' tells a command's options.\n"
      "options: --version, --help\n"
      "exit: 0 done, 1 plan not valid or not as the reference, 2 usage, 3 bad input, 4 stale, 5 internal, 6 device\n");
}

static planc_status run(int argc, char **argv) {
  if (argc < 2) return planc_error(PLANC_USAGE, "no command given; 'planrun --help' lists them");
  if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0) {
    print_usage();
    return NULL;
  }
  if (strcmp(argv[1], "--version") == 0) {
    printf("planrun %s, plan format %d\n", PLANC_VERSION, PLANC_PLAN_VERSION);
    return NULL;
  }
  for (int i = 0; i < N_SUBCOMMANDS; i++) {
    if (strcmp(argv[1], subcommands[i]->line.name) != 0) continue;
    planc_arguments arguments;
    PLANC_TRY(planc_context(planc_options_parse(&subcommands[i]->line, argc - 2, argv + 2, &arguments), "%s", argv[1]));
    if (!arguments.help) return subcommands[i]->run(&arguments);
    planc_options_help("planrun", &subcommands[i]->line, stdout);
    return NULL;
  }
  return planc_error(PLANC_USAGE, "unknown command %s; 'planrun --help' lists them", argv[1]);
}

int main(int argc, char **argv) {
  planc_status status = run(argc, argv);
  if (!status && (fflush(stdout) || ferror(stdout)))
    status = planc_error(PLANC_IO, "standard output cannot be written");
  if (!status) return 0;
  fprintf(stderr, "planrun: %s\n", planc_status_message(status));
  int code = planc_exit_code(planc_status_code(status));
  planc_status_free(status);
  return code;
}
