/* Options that several of planrun's subcommands have (planrun.h). */
#include <string.h>

#include "runtime/cli/planrun.h"
#include "util/size.h"

planc_status run_option_rate(const prog_arguments *arguments, const char *name, int64_t *out) {
  const char *text = prog_option_value(arguments, name);
  size_t length = text ? strlen(text) : 0;
  char size[PL_SIZE_TEXT];
  bool is_rate = length >= 3 && length - 2 < sizeof size && strcmp(text + length - 2, "/s") == 0;
  *out = 0;
  if (!text) return NULL;
  if (is_rate) {
    memcpy(size, text, length - 2);
    size[length - 2] = 0;
    planc_status status = pl_size_parse(size, out);
    is_rate = !status;
    planc_status_free(status);
  }
  if (!is_rate) return planc_error(PLANC_USAGE, "--%s takes a rate such as 0.2GB/s or 200MiB/s, not %s", name, text);
  return *out > 0 ? NULL : planc_error(PLANC_USAGE, "--%s takes a rate above 0", name);
}
