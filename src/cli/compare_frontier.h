/* `planc compare --budgets`: policies side by side within several budgets. */
#ifndef CLI_COMPARE_FRONTIER_H
#define CLI_COMPARE_FRONTIER_H

#include "program/options.h"

/* Plans the graph with the policies of --policies, or all, within each budget and prints the times. */
planc_status cli_compare_frontier(const prog_arguments *arguments);

#endif
