/* The parts of a search for ways (auto_search.h) that its files share. */
#ifndef PLANC_AUTO_AUTO_ANNEAL_H
#define PLANC_AUTO_AUTO_ANNEAL_H

#include "planner/auto/auto_search.h"

/* Judges the ways, and keeps them if they are the fastest that fit. */
void pl_auto_judge(pl_auto_search *s);

#endif
