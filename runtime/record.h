/* What there is to know of a job of a training, whether the plan that runs has it or not: who it is, how far it has
 * come, and what persists of it. Checkpoints are made of records, and jobs that are away are kept by them. */
#ifndef PLANRT_RECORD_H
#define PLANRT_RECORD_H

#include "runtime/match.h"
#include "runtime/session.h"
#include "util/json_tree.h"

/* A value that persists: a storage's. */
typedef struct rt_record_value {
  const char *name;
  int64_t bytes;
} rt_record_value;

struct rt_record {
  rt_identity who;
  int64_t iterations; /* that it has done */
  planrt_samples samples;
  int64_t n_rounds, first_round; /* of an iteration, and samples of the first; 0 = not known */
  const char *why;               /* it has failed; NULL: it has not */
  int64_t failed_at;             /* the first iteration that does not count */
  int32_t n_values;
  rt_record_value *values; /* of each replica, one behind the other */
  int64_t bytes;           /* of all replicas' values */
  pl_arena memory;
};

/* Of a job of the session as it stands between two runs. To be freed after a failure too. */
planc_status rt_record_make(const planrt_session *session, int32_t job, rt_record *out);
planc_status rt_keep_text(pl_arena *arena, const char *text, const char **out);
/* Who a job of a plan is; what that points to is in the arena. */
planc_status rt_identify(pl_arena *arena, const planc_job *job, rt_identity *out);
/* A record as JSON, to and fro; false where it is none that rt_record_print could have made. */
void rt_record_print(const rt_record *record, cJSON *out);
planc_status rt_record_read(const cJSON *from, rt_record *out, bool *out_whole);
/* Whether the job of a plan has other ones than the record; no where that does not say. */
bool rt_record_has_other_rounds(const rt_record *record, const planc_job *job);
bool rt_record_has_same_values(const rt_record *a, const rt_record *b);
void rt_record_free(rt_record *record);

/* 64-bit numbers are strings: JSON's numbers are doubles to many readers. */
void rt_json_add_u64(cJSON *object, const char *key, uint64_t value);
bool rt_json_u64(const cJSON *object, const char *key, uint64_t *out);

#endif
