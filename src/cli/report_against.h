/* What `planc simulate --against` prints of a comparison. */
#ifndef CLI_REPORT_AGAINST_H
#define CLI_REPORT_AGAINST_H

#include <cjson/cJSON.h>

#include "planc/timeline.h"

/* For people, on standard output. `path` is the trace's. */
void cli_print_against(const planc_plan *plan, const planc_comparison *comparison, const planc_timeline *timeline,
                       const char *path);
void cli_report_against(const planc_comparison *comparison, const planc_timeline *timeline, const char *path,
                        cJSON *object);

#endif
