/* What `planc simulate --against` prints of a comparison. */
#ifndef PLANC_AGAINST_H
#define PLANC_AGAINST_H

#include <cjson/cJSON.h>

#include "planc/timeline.h"

/* For people, on standard output. `path` is the trace's. */
void planc_print_against(const planc_comparison *comparison, const planc_timeline *timeline, const char *path);
void planc_report_against(const planc_comparison *comparison, const planc_timeline *timeline, const char *path,
                          cJSON *object);

#endif
