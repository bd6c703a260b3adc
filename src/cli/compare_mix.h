/* `planc compare --colocate`: policies for mixes side by side. */
#ifndef CLI_COMPARE_MIX_H
#define CLI_COMPARE_MIX_H

#include "program/options.h"

/* Plans the mix of the operands with the policies of --policies, or all, and prints the table. */
planc_status cli_compare_mix(const prog_arguments *arguments);

#endif
