/* `planc simulate --passive`. */
#ifndef CLI_REPORT_PASSIVE_H
#define CLI_REPORT_PASSIVE_H

#include "cli/cli.h"

/* Simulates passive swapping of the graph that is the operand, and prints what it takes. */
planc_status cli_report_passive(const prog_arguments *arguments);

#endif
