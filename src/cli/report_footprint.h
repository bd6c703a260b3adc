/* What `planc simulate --free-at` prints of memory that is taken and given back without a plan. */
#ifndef CLI_REPORT_FOOTPRINT_H
#define CLI_REPORT_FOOTPRINT_H

#include <cjson/cJSON.h>

#include "planc/lifespans.h"

/* "schedule" or "completion"; USAGE for anything else. */
planc_status cli_free_at_parse(const char *word, planc_free_at *out);
/* For people, on standard output. */
void cli_print_footprint(const planc_footprint *footprint, planc_free_at free_at);
void cli_report_footprint(const planc_footprint *footprint, planc_free_at free_at, cJSON *object);

#endif
