/* Lists of budgets (budget_list.h). */
#include "cli/budget_list.h"

#include <stdio.h>
#include <string.h>

static planc_status add_budget(const char *option, const char *text, int length, cli_budget_list *out) {
  if (out->n == CLI_MAX_BUDGETS) return planc_error(PLANC_USAGE, "--%s: more than %d", option, CLI_MAX_BUDGETS);
  if (length >= PL_SIZE_TEXT) return planc_error(PLANC_USAGE, "--%s: %.*s is not a size", option, length, text);
  char *name = out->names[out->n];
  (void)snprintf(name, PL_SIZE_TEXT, "%.*s", length, text);
  return prog_option_size_of(option, name, &out->bytes[out->n++]);
}

planc_status cli_budget_list_parse(const char *option, const char *text, cli_budget_list *out) {
  out->n = 0;
  for (bool more = true; more;) {
    int length = (int)strcspn(text, ",");
    PLANC_TRY(add_budget(option, text, length, out));
    more = text[length] == ',';
    text += length + more;
  }
  return NULL;
}
