/* What a command's output is called. */
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"

const char *cli_without_folder(const char *path) {
  const char *base = strrchr(path, '/');
  return base ? base + 1 : path;
}

planc_status cli_output_name(const prog_arguments *arguments, const char *ending, char **out) {
  const char *given = prog_option_value(arguments, "output");
  const char *base = given ? given : cli_without_folder(arguments->operands[0]);
  const char *dot = given ? NULL : strrchr(base, '.');
  size_t stem = dot && dot != base ? (size_t)(dot - base) : strlen(base), length = given ? 0 : strlen(ending);
  *out = malloc(stem + length + 1);
  if (!*out) return planc_error(PLANC_OUT_OF_MEMORY, "out of memory");
  memcpy(*out, base, stem);
  memcpy(*out + stem, ending, length);
  (*out)[stem + length] = '\0';
  return NULL;
}
