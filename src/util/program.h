/* A program of subcommands: finds the one that is asked for and runs it. */
#ifndef PLANC_UTIL_PROGRAM_H
#define PLANC_UTIL_PROGRAM_H

#include "util/options.h"

typedef struct pl_subcommand {
  pl_command_line line;
  planc_status (*run)(const pl_arguments *arguments);
  /* Tells every file that the command line names or implies; NULL where a command writes none. */
  planc_status (*list_files)(const pl_arguments *arguments, pl_used_files *files);
} pl_subcommand;

typedef struct pl_program {
  const char *name;
  const pl_subcommand *const *subcommands;
  int32_t n_subcommands;
  const char *notes; /* what its --help ends with: lines about its own options and its exit codes */
} pl_program;

/* Says which option lifts a refusal, where one does. Takes ownership of `status`. */
planc_status pl_program_remedy(planc_status status);

/* Runs the subcommand that the first argument names with the others, or what --help and --version stand for. Help and
 * version go to `out`; IO when what the subcommand has written there, too, cannot be. `argv` is without the program's
 * own name. */
planc_status pl_program_run(const pl_program *program, int argc, char **argv, FILE *out);

#endif
