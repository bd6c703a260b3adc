/* A program of subcommands: finds the one that is asked for and runs it. */
#ifndef PROGRAM_PROGRAM_H
#define PROGRAM_PROGRAM_H

#include "program/options.h"

typedef struct prog_subcommand {
  prog_command_line line;
  planc_status (*run)(const prog_arguments *arguments);
  /* Tells every file that the command line names or implies; NULL where a command writes none. */
  planc_status (*list_files)(const prog_arguments *arguments, prog_used_files *files);
} prog_subcommand;

typedef struct prog_program {
  const char *name;
  const prog_subcommand *const *subcommands;
  int32_t n_subcommands;
  const char *notes; /* what its --help ends with: lines about its own options and its exit codes */
} prog_program;

/* Says which option lifts a refusal, where one does. Takes ownership of `status`. */
planc_status prog_remedy(planc_status status);

/* Runs the subcommand that the first argument names with the others, or what --help and --version stand for. Help and
 * version go to `out`; IO when what the subcommand has written there, too, cannot be. `argv` is without the program's
 * own name. */
planc_status prog_run(const prog_program *program, int argc, char **argv, FILE *out);

#endif
