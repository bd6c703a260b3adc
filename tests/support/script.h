/* Hand-made plans: a plan from a few lines of text that can be read and changed in a test.
 *
 *   boundary BUFFER ADDRESS                             bodies start with it resident there
 *   home BUFFER ADDRESS                                 or at home in the host arena
 *   prologue | body | epilogue                          what follows belongs to that section
 *   acquire RESIDENCY BUFFER ADDRESS [bytes BYTES]
 *   release RESIDENCY
 *   exec OP [re] [ws ADDRESS BYTES] [on STREAM] use RESIDENCY...
 *   offload|prefetch RESIDENCY HOST|user on STREAM [bytes BYTES]
 *   move RESIDENCY SOURCE on STREAM
 *   record EVENT on STREAM
 *   wait EVENT [lag LAG] on STREAM
 *
 * BUFFER is a storage's name and OP an op's; NAME#2 is the third of that name in the trace, a number is an index. Of
 * each job J there are three streams: 3J compute, 3J+1 h2d, 3J+2 d2h, on GPU R where the job is replica R. */
#ifndef PLANC_TESTS_SCRIPT_H
#define PLANC_TESTS_SCRIPT_H

#include "planc/plan.h"

/* The jobs' graphs are borrowed. Arenas and budgets are `arena` and `host` bytes. INTERNAL when the text is wrong. */
planc_status script_make(const char *text, const planc_job *jobs, int32_t n_jobs, int64_t arena, int64_t host,
                         planc_plan **out);

#endif
