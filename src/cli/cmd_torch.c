/* `planc torch`: records a PyTorch step and plans it. The package planc_torch does it in Python, and calls planc again;
 * this hands the command line on to it. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/cli.h"
#include "util/locate.h"

static const prog_option options[] = {
    {"example", 0, "NAME", "the function beside the step that gives its arguments (default: example)"},
    {"on", 0, "DEVICE", "where the step runs: cpu or cuda (default: cuda where PyTorch sees one)"},
    {"device", 'd', "NAME|FILE", "the GPU to plan for, see planc plan (default: h100)"},
    {"profile", 'p', "FILE", "measured profile to plan with, instead of --device"},
    {"budget", 'm', "SIZE|N%", "device memory, or a part of what the step takes as it is (default: the device's)"},
    {"host-budget", 0, "SIZE", "host memory for offloaded data (default: not limited)"},
    {"effort", 0, "LEVEL", "how long policy auto searches, 0 to 3 (default: 1)"},
    {"graph", 0, "FILE", "keep the recorded graph in this file"},
    {"output", 'o', "FILE", "the plan (default: FILE's name with .plan, here)"},
    {"json", 0, NULL, "the table as one line of JSON"},
    {0},
};

static planc_status run(const prog_arguments *arguments);

const prog_subcommand cli_cmd_torch = {
    {"torch", "FILE.py:STEP", "record a PyTorch training step as it runs, and plan it", options, 1, 1}, run, NULL};

/* Puts the place of the package in front of where Python looks for modules. */
static planc_status lead_to_package(void) {
  char place[4096], path[8192];
  const char *before = getenv("PYTHONPATH");
  if (!pl_locate_package("planc_torch", place, sizeof place)) return NULL;
  const char *separator = before && *before ? ":" : "";
  if (snprintf(path, sizeof path, "%s%s%s", place, separator, before ? before : "") >= (int)sizeof path)
    return planc_error(PLANC_USAGE, "PYTHONPATH is too long");
  return setenv("PYTHONPATH", path, 1) ? planc_error(PLANC_OUT_OF_MEMORY, "environment") : NULL;
}

/* The words of a command line, which hold what they point to. */
typedef struct words {
  char *at[4 + 2 * PROG_MAX_OPTIONS + 1];
  int n;
  char names[PROG_MAX_OPTIONS][32], device[4096];
} words;

static void add(words *to, const char *word) {
  to->at[to->n++] = (char *)word;
}

/* The options as they were given, the device by its file. */
static planc_status add_options(words *to, const prog_arguments *arguments) {
  for (int i = 0; options[i].name; i++) {
    const char *value = arguments->values[i];
    bool is_device = strcmp(options[i].name, "device") == 0;
    if (is_device && !prog_option_given(arguments, "profile")) {
      PLANC_TRY(pl_locate_device(value ? value : CLI_DEFAULT_DEVICE, to->device, sizeof to->device));
      value = to->device;
    }
    if (!value) continue;
    snprintf(to->names[i], sizeof to->names[i], "--%s", options[i].name);
    add(to, to->names[i]);
    if (options[i].value) add(to, value);
  }
  add(to, NULL);
  return NULL;
}

static planc_status run(const prog_arguments *arguments) {
  const char *python = getenv("PLANC_PYTHON");
  char program[4096];
  words to = {.n = 0};
  if (prog_option_given(arguments, "device") && prog_option_given(arguments, "profile"))
    return planc_error(PLANC_USAGE, "give either --device or --profile");
  ssize_t length = readlink("/proc/self/exe", program, sizeof program - 1);
  program[length > 0 ? length : 0] = 0;
  PLANC_TRY(lead_to_package());
  if (setenv("PLANC", program, 1)) return planc_error(PLANC_OUT_OF_MEMORY, "environment");
  add(&to, python && *python ? python : "python3");
  add(&to, "-m");
  add(&to, "planc_torch");
  add(&to, arguments->operands[0]);
  PLANC_TRY(add_options(&to, arguments));
  fflush(stdout);
  execvp(to.at[0], to.at);
  return planc_error(PLANC_USAGE, "%s cannot be run: %s; PLANC_PYTHON names the Python that has PyTorch", to.at[0],
                     strerror(errno));
}
