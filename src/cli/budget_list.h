/* Budgets given as a list, "12G,8G". */
#ifndef CLI_BUDGET_LIST_H
#define CLI_BUDGET_LIST_H

#include "cli/cli.h"

enum { CLI_MAX_BUDGETS = 64 };

typedef struct cli_budget_list {
  int32_t n;
  char names[CLI_MAX_BUDGETS][PL_SIZE_TEXT]; /* as the user wrote them */
  int64_t bytes[CLI_MAX_BUDGETS];
} cli_budget_list;

/* USAGE, with the option's name, where the text is no list of sizes. */
planc_status cli_budget_list_parse(const char *option, const char *text, cli_budget_list *out);

#endif
