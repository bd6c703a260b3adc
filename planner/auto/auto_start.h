/* Where a search for ways (auto_search.h) begins: all versions stay, and the way is taken, one after the other, that
 * saves most of the charge for the time that it costs, unless computing segments again (auto_segments.h) is better. */
#ifndef PLANC_AUTO_AUTO_START_H
#define PLANC_AUTO_AUTO_START_H

#include "planner/auto/auto_search.h"

/* From where everything stays. Ways are judged one by one as long as that takes at most `most_work`; beyond that, as
 * for large graphs from the beginning, many are taken at once. */
void pl_auto_search_start(pl_auto_search *s, int64_t most_work);

#endif
