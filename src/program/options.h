/* Command lines from tables: one table per command serves parsing, --help and the messages about misuse. */
#ifndef PROGRAM_OPTIONS_H
#define PROGRAM_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "planc/status.h"
#include "program/used_files.h"

typedef struct prog_option {
  const char *name;  /* long name without dashes; the last entry of a table has NULL */
  char letter;       /* short name or 0 */
  const char *value; /* placeholder of its value in --help, ending in " ..." where it repeats; NULL for a flag */
  const char *help;
} prog_option;

typedef struct prog_command_line {
  const char *name, *operands; /* "plan", "GRAPH" */
  const char *summary;
  const prog_option *options;
  int32_t min_operands, max_operands;
} prog_command_line;

enum { PROG_MAX_OPTIONS = 48, PROG_MAX_OPERANDS = 1024, PROG_MAX_REPEATS = 256 };

typedef struct prog_arguments {
  const prog_command_line *line;
  const char *values[PROG_MAX_OPTIONS]; /* parallel to the table; flags hold "" when given; NULL = absent */
  const char *operands[PROG_MAX_OPERANDS];
  /* The values of those that repeat, all in the order of the command line. */
  struct {
    int32_t option;
    const char *value;
  } repeated[PROG_MAX_REPEATS];
  int32_t n_operands, n_repeated;
  bool help;
  prog_used_files *files; /* what the command uses; one that turns out later is added */
} prog_arguments;

/* Parses what follows the command's name. Every command also takes --help. USAGE names what is wrong; a value given
 * twice is, but of an option that repeats. Values point into argv. */
planc_status prog_options_parse(const prog_command_line *line, int argc, char **argv, prog_arguments *out);
/* The value of option `name`, the first one where it repeats, NULL when absent. `name` must be in the table. */
const char *prog_option_value(const prog_arguments *arguments, const char *name);
/* The value given `index`-th, from 0, of an option that repeats; NULL when there are no more. */
const char *prog_option_repeated(const prog_arguments *arguments, const char *name, int32_t index);
/* How often an option that repeats is given. */
int32_t prog_option_count(const prog_arguments *arguments, const char *name);
bool prog_option_given(const prog_arguments *arguments, const char *name);
/* An integer option in [low, high], or `fallback` when absent. */
planc_status prog_option_int(const prog_arguments *arguments, const char *name, int64_t low, int64_t high,
                             int64_t fallback, int64_t *out);
/* The same of a value of an option that repeats. */
planc_status prog_option_int_of(const char *name, const char *text, int64_t low, int64_t high, int64_t *out);
/* A size option (pl_size_parse), or `fallback` when absent. */
planc_status prog_option_size(const prog_arguments *arguments, const char *name, int64_t fallback, int64_t *out);
/* The same of a value of an option that repeats. */
planc_status prog_option_size_of(const char *name, const char *text, int64_t *out);
/* A time option (pl_time_parse), or `fallback` when absent. */
planc_status prog_option_time(const prog_arguments *arguments, const char *name, int64_t fallback, int64_t *out_ns);
/* Writes the command's help. */
void prog_options_help(const char *program, const prog_command_line *line, FILE *out);

#endif
