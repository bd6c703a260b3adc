/* Command lines from tables: one table per command serves parsing, --help and the messages about misuse. */
#ifndef PLANC_UTIL_OPTIONS_H
#define PLANC_UTIL_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "planc/status.h"
#include "util/used_files.h"

typedef struct pl_option {
  const char *name;  /* long name without dashes; the last entry of a table has NULL */
  char letter;       /* short name or 0 */
  const char *value; /* placeholder of its value in --help, ending in " ..." where it repeats; NULL for a flag */
  const char *help;
} pl_option;

typedef struct pl_command_line {
  const char *name, *operands; /* "plan", "GRAPH" */
  const char *summary;
  const pl_option *options;
  int32_t min_operands, max_operands;
} pl_command_line;

enum { PL_MAX_OPTIONS = 48, PL_MAX_OPERANDS = 1024, PL_MAX_REPEATS = 256 };

typedef struct pl_arguments {
  const pl_command_line *line;
  const char *values[PL_MAX_OPTIONS]; /* parallel to the table; flags hold "" when given; NULL = absent */
  const char *operands[PL_MAX_OPERANDS];
  /* The values of those that repeat, all in the order of the command line. */
  struct {
    int32_t option;
    const char *value;
  } repeated[PL_MAX_REPEATS];
  int32_t n_operands, n_repeated;
  bool help;
  pl_used_files *files; /* what the command uses; one that turns out later is added */
} pl_arguments;

/* Parses what follows the command's name. Every command also takes --help. USAGE names what is wrong; a value given
 * twice is, but of an option that repeats. Values point into argv. */
planc_status pl_options_parse(const pl_command_line *line, int argc, char **argv, pl_arguments *out);
/* The value of option `name`, the first one where it repeats, NULL when absent. `name` must be in the table. */
const char *pl_option_value(const pl_arguments *arguments, const char *name);
/* The value given `index`-th, from 0, of an option that repeats; NULL when there are no more. */
const char *pl_option_repeated(const pl_arguments *arguments, const char *name, int32_t index);
/* How often an option that repeats is given. */
int32_t pl_option_count(const pl_arguments *arguments, const char *name);
bool pl_option_given(const pl_arguments *arguments, const char *name);
/* An integer option in [low, high], or `fallback` when absent. */
planc_status pl_option_int(const pl_arguments *arguments, const char *name, int64_t low, int64_t high, int64_t fallback,
                           int64_t *out);
/* The same of a value of an option that repeats. */
planc_status pl_option_int_of(const char *name, const char *text, int64_t low, int64_t high, int64_t *out);
/* A size option (pl_size_parse), or `fallback` when absent. */
planc_status pl_option_size(const pl_arguments *arguments, const char *name, int64_t fallback, int64_t *out);
/* The same of a value of an option that repeats. */
planc_status pl_option_size_of(const char *name, const char *text, int64_t *out);
/* A time option (pl_time_parse), or `fallback` when absent. */
planc_status pl_option_time(const pl_arguments *arguments, const char *name, int64_t fallback, int64_t *out_ns);
/* Writes the command's help. */
void pl_options_help(const char *program, const pl_command_line *line, FILE *out);

#endif
