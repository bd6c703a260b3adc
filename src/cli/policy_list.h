/* Policies given as a list, "none,modnn". */
#ifndef CLI_POLICY_LIST_H
#define CLI_POLICY_LIST_H

#include "cli/cli.h"

typedef struct cli_policy_list {
  int32_t n, most;
  const planc_policy **policies; /* owned */
} cli_policy_list;

/* Those of option --policies in its order, each once, else all but those that choose among the others. USAGE where an
 * option is given that none of them has a use for. Free with cli_policy_list_free, also after a failure. */
planc_status cli_policy_list_read(const prog_arguments *arguments, cli_policy_list *out);
void cli_policy_list_free(cli_policy_list *list);

#endif
