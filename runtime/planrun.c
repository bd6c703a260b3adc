/* planrun: the executor's program. This file lists the subcommands; each has a file of its own (cmd_*.c). */
#include <stdio.h>
#include <string.h>

#include "runtime/cli.h"
#include "util/print.h"
#include "util/size.h"

static const planc_subcommand *const subcommands[] = {&planrt_cmd_exec, &planrt_cmd_profile, &planrt_cmd_info};
static const planc_program program = {
    .name = "planrun",
    .subcommands = subcommands,
    .n_subcommands = sizeof subcommands / sizeof *subcommands,
    .notes =
        "options: --version, --help\n"
        "exit: 0 done, 1 plan not valid or not as the reference, 2 usage, 3 bad input, 4 stale, 5 internal, 6 device\n",
};

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

int main(int argc, char **argv) {
  planc_status status = planc_program_run(&program, argc - 1, argv + 1, stdout);
  if (!status) return 0;
  planc_print_line(stderr, "planrun: %s", planc_status_message(status));
  int code = planc_exit_code(planc_status_code(status));
  planc_status_free(status);
  return code;
}
