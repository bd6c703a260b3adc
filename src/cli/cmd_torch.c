/* `planc torch`: records a PyTorch step and plans it. The package planc_torch does it in Python, and calls planc again;
 * this hands the command line on to it. */
#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/cli.h"
#include "util/locate.h"

static const prog_option options[] = {
    {"example", 0, "NAME", "the function beside the step that gives its arguments (default: example)"},
    {"on", 0, "DEVICE", "where the step runs: cpu or cuda (default: cuda where PyTorch sees one)"},
    {"fake", 0, NULL, "record without the device and without its memory, by tensors that have no elements"},
    {"device", 'd', "NAME|FILE", "the GPU to plan for, see planc plan (default: h100)"},
    {"profile", 'p', "FILE", "measured profile to plan with, instead of --device"},
    {"budget", 'm', "SIZE|N%", "device memory, or a part of what the step takes as it is (default: the device's)"},
    {"host-budget", 0, "SIZE", "host memory for offloaded data (default: not limited)"},
    {"effort", 0, "LEVEL", "how long policy auto searches, 0 to 3 (default: 1)"},
    {"graph", 0, "FILE", "keep the recorded graph in this file"},
    {"batches", 0, "B,B,B", "record at three batch sizes, and make a graph of all batches instead of a plan"},
    {"micro-batches", 0, "K,K,...",
     "record the step in each of so many micro-batches, and plan the fastest (default: 1)"},
    {"output", 'o', "FILE", "the plan (default: FILE's name with .plan, here)"},
    {"check", 0, "PLAN", "only tell whether PLAN is of the step as it is now"},
    {"json", 0, NULL, "the table as one line of JSON"},
    {0},
};

static planc_status run(const prog_arguments *arguments);
static planc_status list_files(const prog_arguments *arguments, prog_used_files *files);

const prog_subcommand cli_cmd_torch = {
    {"torch", "FILE.py:STEP [ARGUMENT ...]", "record a PyTorch training step as it runs, and plan it", options, 1,
     PROG_MAX_OPERANDS},
    run,
    list_files};

enum { PATH_ROOM = 4096 };

/* The file that the step is in: what stands before the last colon, or all of it. */
static planc_status file_of(const prog_arguments *arguments, char out[PATH_ROOM]) {
  const char *operand = arguments->operands[0], *colon = strrchr(operand, ':');
  int length = (int)(colon ? colon - operand : (ptrdiff_t)strlen(operand));
  if (snprintf(out, PATH_ROOM, "%.*s", length, operand) >= PATH_ROOM)
    return planc_error(PLANC_USAGE, "the step's path is too long");
  return NULL;
}

/* The plan's file: the one asked for, else named as the step's, in the current folder. */
static planc_status output_of(const prog_arguments *arguments, char out[PATH_ROOM]) {
  const char *asked = prog_option_value(arguments, "output");
  char file[PATH_ROOM];
  if (asked)
    return snprintf(out, PATH_ROOM, "%s", asked) < PATH_ROOM ? NULL : planc_error(PLANC_USAGE, "--output is too long");
  PLANC_TRY(file_of(arguments, file));
  const char *slash = strrchr(file, '/'), *base = slash ? slash + 1 : file, *dot = strrchr(base, '.');
  int length = (int)(dot && dot > base ? dot - base : (ptrdiff_t)strlen(base));
  return snprintf(out, PATH_ROOM, "%.*s.plan", length, base) < PATH_ROOM
             ? NULL
             : planc_error(PLANC_USAGE, "the step's path is too long");
}

static planc_status list_files(const prog_arguments *arguments, prog_used_files *files) {
  char path[PATH_ROOM], device[PATH_ROOM];
  const char *profile = prog_option_value(arguments, "profile"), *named = prog_option_value(arguments, "device");
  PLANC_TRY(file_of(arguments, path));
  PLANC_TRY(prog_used_files_read(files, path));
  PLANC_TRY(prog_used_files_read(files, profile));
  if (!profile) {
    PLANC_TRY(pl_locate_device(named ? named : CLI_DEFAULT_DEVICE, device, sizeof device));
    PLANC_TRY(prog_used_files_read(files, device));
  }
  if (prog_option_given(arguments, "check")) return prog_used_files_read(files, prog_option_value(arguments, "check"));
  PLANC_TRY(prog_used_files_write(files, prog_option_value(arguments, "graph")));
  if (prog_option_given(arguments, "batches")) return NULL;
  PLANC_TRY(output_of(arguments, path));
  if (strcmp(path, "-") == 0) return planc_error(PLANC_USAGE, "the plan goes to a file, not to standard output");
  return prog_used_files_write(files, path);
}

/* Runs the package from the folder that is its first argument, or from where Python has it where that is empty. */
static const char starter[] =
    "import sys; place = sys.argv.pop(1); sys.path[:0] = [place] if place else []; "
    "from planc_torch.__main__ import run; sys.exit(run())";

/* The words of a command line, which hold what they point to. */
typedef struct words {
  char *at[9 + 2 * PROG_MAX_OPTIONS + PROG_MAX_OPERANDS + 1];
  int n;
  char names[PROG_MAX_OPTIONS][32], device[PATH_ROOM], output[PATH_ROOM];
} words;

static planc_status refuse_planning(const prog_arguments *arguments);
static void add(words *to, const char *word);
static planc_status add_options(words *to, const prog_arguments *arguments);
static void add_arguments(words *to, const prog_arguments *arguments);

static planc_status run(const prog_arguments *arguments) {
  const char *python = getenv("PLANC_PYTHON");
  char program[PATH_ROOM], package[PATH_ROOM];
  words to = {.n = 0};
  if (!strchr(arguments->operands[0], ':'))
    return planc_error(PLANC_USAGE, "%s: FILE.py:STEP is expected", arguments->operands[0]);
  PLANC_TRY(refuse_planning(arguments));
  if (prog_option_given(arguments, "device") && prog_option_given(arguments, "profile"))
    return planc_error(PLANC_USAGE, "give either --device or --profile");
  pl_locate_program(program, sizeof program);
  if (!pl_locate_package("planc_torch", package, sizeof package)) *package = 0;
  add(&to, python && *python ? python : "python3");
  add(&to, "-c");
  add(&to, starter);
  add(&to, package);
  add(&to, arguments->operands[0]);
  add(&to, "--planc");
  add(&to, program);
  PLANC_TRY(add_options(&to, arguments));
  add_arguments(&to, arguments);
  fflush(stdout);
  execvp(to.at[0], to.at);
  return planc_error(PLANC_USAGE, "%s cannot be run: %s; set PLANC_PYTHON to a Python that has PyTorch", to.at[0],
                     strerror(errno));
}

static void add(words *to, const char *word) {
  to->at[to->n++] = (char *)word;
}

static bool makes_plan(const prog_arguments *arguments) {
  return !prog_option_given(arguments, "check") && !prog_option_given(arguments, "batches");
}

/* The options as they were given, the device by its file, and where the plan goes. */
static planc_status add_options(words *to, const prog_arguments *arguments) {
  for (int i = 0; options[i].name; i++) {
    const char *value = arguments->values[i];
    bool is_device = strcmp(options[i].name, "device") == 0;
    if (is_device && !prog_option_given(arguments, "profile")) {
      PLANC_TRY(pl_locate_device(value ? value : CLI_DEFAULT_DEVICE, to->device, sizeof to->device));
      value = to->device;
    }
    if (strcmp(options[i].name, "output") == 0 && makes_plan(arguments)) {
      PLANC_TRY(output_of(arguments, to->output));
      value = to->output;
    }
    if (!value) continue;
    snprintf(to->names[i], sizeof to->names[i], "--%s", options[i].name);
    add(to, to->names[i]);
    if (options[i].value) add(to, value);
  }
  return NULL;
}

/* Of the step's file, behind all else. */
static void add_arguments(words *to, const prog_arguments *arguments) {
  if (arguments->n_operands > 1) add(to, "--arguments");
  for (int32_t i = 1; i < arguments->n_operands; i++) add(to, arguments->operands[i]);
  add(to, NULL);
}

static planc_status refuse_beside(const prog_arguments *arguments, const char *option, const char *const *useless);

/* Nothing is planned, and nothing written, where a plan is only held against the step; and where a graph is all that is
 * made there is no plan. The GPU matters to both only where its kernels are recorded without it. */
static planc_status refuse_planning(const prog_arguments *arguments) {
  static const char *const described[] = {"device", "profile", NULL};
  static const char *const beside_check[] = {"budget",  "host-budget",   "effort", "output", "graph",
                                             "batches", "micro-batches", "json",   NULL};
  static const char *const beside_batches[] = {"budget", "host-budget", "effort", "micro-batches", "output", NULL};
  const bool checks = prog_option_given(arguments, "check");
  const char *option = checks ? "check" : "batches";
  if (makes_plan(arguments)) return NULL;
  PLANC_TRY(refuse_beside(arguments, option, checks ? beside_check : beside_batches));
  if (!prog_option_given(arguments, "fake")) PLANC_TRY(refuse_beside(arguments, option, described));
  if (!checks && !prog_option_given(arguments, "graph"))
    return planc_error(PLANC_USAGE, "--batches makes a graph; name its file with --graph");
  return NULL;
}

static planc_status refuse_beside(const prog_arguments *arguments, const char *option, const char *const *useless) {
  for (; *useless; useless++)
    if (prog_option_given(arguments, *useless))
      return planc_error(PLANC_USAGE, "--%s makes no plan and has no use for --%s", option, *useless);
  return NULL;
}
