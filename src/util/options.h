/* Command lines from tables: one table per command serves parsing, --help and the messages about misuse. */
#ifndef PLANC_UTIL_OPTIONS_H
#define PLANC_UTIL_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "planc/status.h"
#include "util/used_files.h"

typedef struct planc_option {
  const char *name;  /* long name without dashes; the last entry of a table has NULL */
  char letter;       /* short name or 0 */
  const char *value; /* placeholder of its value in --help, ending in " ..." where it repeats; NULL for a flag */
  const char *help;
} planc_option;

typedef struct planc_command_line {
  const char *name, *operands; /* "plan", "GRAPH" */
  const char *summary;
  const planc_option *options;
  int32_t min_operands, max_operands;
} planc_command_line;

enum { PLANC_MAX_OPTIONS = 24, PLANC_MAX_OPERANDS = 1024, PLANC_MAX_REPEATS = 64 };

typedef struct planc_arguments {
  const planc_command_line *line;
  const char *values[PLANC_MAX_OPTIONS]; /* parallel to the table; flags hold "" when given; NULL = absent */
  const char *operands[PLANC_MAX_OPERANDS];
  /* The values of those that repeat, all in the order of the command line. */
  struct {
    int32_t option;
    const char *value;
  } repeated[PLANC_MAX_REPEATS];
  int32_t n_operands, n_repeated;
  bool help;
  planc_used_files *files; /* what the command uses; one that turns out later is added */
} planc_arguments;

/* Parses what follows the command's name. Every command also takes --help. USAGE names what is wrong; a value given
 * twice is, but of an option that repeats. Values point into argv. */
planc_status planc_options_parse(const planc_command_line *line, int argc, char **argv, planc_arguments *out);
/* The value of option `name`, the first one where it repeats, NULL when absent. `name` must be in the table. */
const char *planc_option_value(const planc_arguments *arguments, const char *name);
/* The value given `index`-th, from 0, of an option that repeats; NULL when there are no more. */
const char *planc_option_repeated(const planc_arguments *arguments, const char *name, int32_t index);
bool planc_option_given(const planc_arguments *arguments, const char *name);
/* An integer option in [low, high], or `fallback` when absent. */
planc_status planc_option_int(const planc_arguments *arguments, const char *name, int64_t low, int64_t high,
                              int64_t fallback, int64_t *out);
/* A size option (planc_size_parse), or `fallback` when absent. */
planc_status planc_option_size(const planc_arguments *arguments, const char *name, int64_t fallback, int64_t *out);
/* Writes the command's help. */
void planc_options_help(const char *program, const planc_command_line *line, FILE *out);

#endif
