/* What a trace's buffers hold before its ops are compared: numbers of both signs. */
#ifndef TESTS_CUDA_SAMPLES_H
#define TESTS_CUDA_SAMPLES_H

#include "runtime/session.h"

/* Fills every buffer b of the session's trace at arena + offsets[b]: parameters, state and samples; all else is zero.
 */
planc_status samples_fill(planrt_session *session, const int64_t *offsets, char *arena);

#endif
