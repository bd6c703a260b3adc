/* Hand-made plans: a plan from a few lines of text that can be read and changed in a test.
 *
 *   gpus GPU...                                         of each job; else GPU 0
 *   storage BYTES                                       there is one, of so many
 *   boundary BUFFER ADDRESS [MEMORY]                    parked there when bodies start
 *   prologue | body | epilogue                          what follows belongs to that section
 *   acquire RESIDENCY BUFFER ADDRESS [MEMORY] [bytes BYTES]
 *   release RESIDENCY
 *   exec OP [re] [ws ADDRESS BYTES] [on STREAM] use RESIDENCY...
 *   copy TO FROM [peers] on STREAM [bytes BYTES] [takes NS]      residencies, or user
 *   record EVENT on STREAM
 *   wait EVENT [lag LAG] [peers] on STREAM
 *
 * BUFFER is a storage's name and OP an op's; NAME#2 is the third of that name in the trace, a number is an index.
 * MEMORY is host, storage, user or in NUMBER; without it it is the device of the buffer's job. Streams are those of
 * plan_tables.h. What is said of jobs and storage comes first. */
#ifndef PLANC_TESTS_SCRIPT_H
#define PLANC_TESTS_SCRIPT_H

#include "planc/plan.h"

/* The jobs' graphs are borrowed. Devices' arenas and budgets are `arena` bytes, that of the host is `host` bytes,
 * without a budget. INTERNAL when the text is wrong. */
planc_status script_make(const char *text, const planc_job *jobs, int32_t n_jobs, int64_t arena, int64_t host,
                         planc_plan **out);

#endif
