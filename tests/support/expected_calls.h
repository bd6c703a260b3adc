/* What a session has to call on its backend, derived from the plan and the trace that its jobs expand to; nothing of
 * the session's own is looked at. Compared with what the recording backend was called with. */
#ifndef PLANC_TESTS_EXPECTED_CALLS_H
#define PLANC_TESTS_EXPECTED_CALLS_H

#include "tests/support/recording.h"

typedef struct expected_calls expected_calls;

/* For a session just made over `plan`, which is for one GPU, with `options`: with recording_feed, and with
 * recording_sink or none, on the recording's first device. Both are borrowed. */
expected_calls *expected_new(const planc_plan *plan, const planrt_options *options);
void expected_free(expected_calls *e);

/* Appends what planrt_session_new calls, or what a run from `step` on does that is stopped after `periods` of the
 * periods that it was asked for. */
void expected_opening(expected_calls *e);
void expected_run(expected_calls *e, planrt_step step, int64_t asked, int64_t periods);
/* The same, when streams may run in any order that the events allow. */
void expected_interleaved(expected_calls *e, planrt_step step, int64_t periods);

/* Compares what was appended with what was recorded since the last time, on the first device; `what` is said when they
 * differ. After an interleaved run each stream's calls are compared for themselves. */
void expected_compare(expected_calls *e, const char *what);
/* What was recorded so far is not compared. */
void expected_skip(expected_calls *e);
/* After a comparison: where parameters are at home is what planrt_read reads; homes, samples on their way in and
 * results on their way out are beside each other in pinned memory. */
void expected_places(const expected_calls *e, const planrt_session *session);

#endif
