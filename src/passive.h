/* `planc simulate --passive`. */
#ifndef PLANC_CMD_PASSIVE_H
#define PLANC_CMD_PASSIVE_H

#include "cli.h"

/* Simulates passive swapping of the graph that is the operand, and prints what it takes. */
planc_status planc_report_passive(const planc_arguments *arguments);

#endif
