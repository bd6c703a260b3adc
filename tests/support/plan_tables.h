/* Memories, links and streams of plans that tests make, numbered as planc numbers them: the devices, the host, the
 * storage if there is one, the user. Of GPU g engine 2g copies from the user to the GPU and the host, and from the host
 * to the GPU, engine 2g+1 the same ways back. Of job j stream 3j computes, stream 3j+1 is a queue of the one engine,
 * 3j+2 of the other. Of storage, behind all others, an engine copies there from user and host, the next one the same
 * ways back; of J jobs streams 3J+2j and 3J+2j+1 are queues of them. */
#ifndef PLANC_TESTS_PLAN_TABLES_H
#define PLANC_TESTS_PLAN_TABLES_H

#include "planc/plan.h"
#include "util/arena.h"

/* For the plan's jobs, of which job j is on GPU gpus[j], or, if that is NULL, on GPU 0. Arenas are empty, budgets not
 * limited; every link copies a byte in a nanosecond, whatever is copied the other way. */
planc_status tables_make(planc_plan *plan, pl_arena *arena, const int32_t *gpus, bool storage);

/* The number of the first memory of a kind; -1 if there is none. */
int32_t tables_memory(const planc_plan *plan, planc_memory_kind kind);
/* Sets the sizes of arenas, of every device and of the host, and the predicted peaks, which follow. */
void tables_arenas(planc_plan *plan, int64_t device, int64_t host);
void tables_budgets(planc_plan *plan, int64_t device, int64_t host);
/* Gives the first device virtual memory, and no other memory; the mappings are borrowed. */
void tables_map(planc_plan *plan, int64_t chunk_bytes, const planc_mapping *mappings, int32_t n);
/* Sets what copies cost, with the engines that copy to devices and with those that copy from them; storage stays as
 * it is. */
void tables_links(planc_plan *plan, planc_link h2d, planc_link d2h);

#endif
