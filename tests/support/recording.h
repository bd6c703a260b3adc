/* A backend that runs nothing and records every call it gets, in order, with what the call said.
 *
 * Copies and poisoning are done, host work is run at once; a launch only marks what the call puts out with bytes that
 * follow from the instance and from what the launch was told (period, seed, learning rate), and so does a digest.
 * Work that breaks the rules of runtime/backend.h fails with INTERNAL: streams and events that the device does not
 * have, calls that it has not prepared, copies outside its arena, a digest of another call than the last one, two
 * captures, a closed device. Waits that nothing has reached are INVALID_PLAN. */
#ifndef PLANC_TESTS_RECORDING_H
#define PLANC_TESTS_RECORDING_H

#include "runtime/backend.h"

typedef enum recorded_kind {
  RECORDED_OPEN,
  RECORDED_CLOSE,
  RECORDED_PIN,
  RECORDED_TAKEN,
  RECORDED_PREPARE,
  RECORDED_LAUNCH,
  RECORDED_COPY,
  RECORDED_HOST,
  RECORDED_ASKED, /* recording_feed was called */
  RECORDED_GIVEN, /* recording_sink was called */
  RECORDED_DIGEST,
  RECORDED_POISON,
  RECORDED_RECORD,
  RECORDED_WAIT,
  RECORDED_FORGET,
  RECORDED_CAPTURE,
  RECORDED_CAPTURED,
  RECORDED_REPLAY,
  RECORDED_SYNCHRONIZE
} recorded_kind;
const char *recorded_kind_name(recorded_kind kind);

typedef struct recorded_call {
  recorded_kind kind;
  int32_t device;        /* in the order they were opened; asked, given: whose host work it was, -1 if none's */
  int32_t stream;        /* -1: none; asked, given: the host work's */
  int32_t id;            /* prepare, launch, digest: instance; record, wait: event; copy: direction */
  const void *to, *from; /* copy; pin, poison, asked: to; given: from; prepare, launch: workspace in `to` */
  int64_t bytes;         /* of these */
  int64_t number;        /* record, wait: generation; host, replay: period; taken: bytes */
  bool pinned;           /* copy: what of it is the host's lies in pinned memory or the host arena */
  bool kept;             /* captured, not run */
  const rt_call *call;
  const char *algorithm; /* prepare, launch */
  rt_launch launch;      /* launch, replay */
  rt_span *span;
  int32_t job, storage, round; /* asked, given; round -1 in asked */
  int64_t iteration, offset, count;
  rt_device_options options; /* open */
  rt_host_work work;         /* host */
  void *user;
  const void *what;
  uint64_t *digest;
} recorded_call;

typedef struct recording_options {
  int64_t taken_bytes;
  int64_t device_bytes, before_bytes; /* of memory in all, and taken of it before anything is opened */
  int64_t context_bytes;              /* 0: cannot be found out */
  int64_t fail_at; /* this call, counted from 1 over those that give a status, fails with DEVICE; 0: none does */
  bool fail_late;  /* work fails as it runs then: the device drops what follows, and the next `synchronize` fails */
  /* On the first device the digests, or what launches put out, are wrong in the period before this one; 0: never. */
  int64_t wrong_digests, wrong_results;
} recording_options;

extern const planrt_backend recording_backend;

/* Begins a recording; there is one at a time. `options` may be NULL. */
void recording_start(const recording_options *options);
/* Frees it, and fails the test if a device is still open. */
void recording_end(void);
/* In the order they were opened. */
const rt_device *recording_device(int32_t index);
int64_t recording_length(void);
const recorded_call *recording_at(int64_t index);
/* Those that give a status, so far. */
int64_t recording_fallible(void);

/* For planrt_options: samples that follow from the request, and results that are looked at. */
planc_status recording_feed(void *user, const planrt_feed_request *request);
planc_status recording_sink(void *user, const planrt_result *result);

#endif
