/* Stream capture and graphs on the emulated device. */
#include <stdbool.h>

#include "tests/cuda/emulated.h"

enum { SEEDS = 40 };

static void seed(int n) {
  emulator_seed((uint64_t)n * 7919 + 1);
}

/* A fork and join over two streams: the graph's nodes keep to its order and no other, launch for launch. */
START_TEST(graphs_run_in_every_order_that_they_allow) {
  int seen[2] = {0};
  for (int i = 0; i < SEEDS; i++) {
    seed(i);
    journal j = {0};
    entry e[] = {{&j, 'f'}, {&j, 'a'}, {&j, 'b'}, {&j, 'j'}, {&j, '-'}};
    cudaStream_t a = new_stream(), b = new_stream();
    cudaEvent_t fork = new_event(), join = new_event();
    cudaGraph_t graph;
    cudaGraphExec_t exec;
    cuda_ok(cudaStreamBeginCapture(a, cudaStreamCaptureModeGlobal));
    note(a, &e[0]);
    cuda_ok(cudaEventRecord(fork, a));
    cuda_ok(cudaStreamWaitEvent(b, fork, 0));
    note(a, &e[1]);
    note(b, &e[2]);
    cuda_ok(cudaEventRecord(join, b));
    cuda_ok(cudaStreamWaitEvent(a, join, 0));
    note(a, &e[3]);
    cuda_ok(cudaStreamEndCapture(a, &graph));
    ck_assert_int_eq(j.n, 0);
    cuda_ok(cudaGraphInstantiate(&exec, graph, 0));
    cuda_ok(cudaGraphDestroy(graph));
    cuda_ok(cudaGraphLaunch(exec, a));
    note(a, &e[4]);
    cuda_ok(cudaGraphLaunch(exec, b)); /* after the first, though on another stream */
    cuda_ok(cudaDeviceSynchronize());
    ck_assert_int_eq(j.n, 9);
    char *dash = strchr(j.text, '-');
    ck_assert_int_ge(dash - j.text, 4);
    memmove(dash, dash + 1, strlen(dash));
    for (int launch = 0; launch < 2; launch++) {
      bool ab = strncmp(j.text + 4 * launch, "fabj", 4) == 0;
      ck_assert_msg(ab || strncmp(j.text + 4 * launch, "fbaj", 4) == 0, "%s", j.text);
      seen[ab]++;
    }
    cuda_ok(cudaGraphExecDestroy(exec));
    free_event(fork);
    free_event(join);
    free_stream(a);
    free_stream(b);
  }
  ck_assert(seen[0] > 0 && seen[1] > 0);
}
END_TEST

/* External records and waits go by launches, not by the capture. */
START_TEST(external_events_are_of_the_launch) {
  for (int i = 0; i < SEEDS; i++) {
    seed(i);
    journal j = {0};
    entry e[] = {{&j, 'g'}, {&j, 'w'}};
    cudaStream_t a = new_stream(), b = new_stream();
    cudaEvent_t event = new_event();
    cudaGraph_t graph;
    cudaGraphExec_t exec;
    cuda_ok(cudaStreamBeginCapture(a, cudaStreamCaptureModeRelaxed));
    note(a, &e[0]);
    cuda_ok(cudaEventRecordWithFlags(event, a, cudaEventRecordExternal));
    cuda_ok(cudaStreamEndCapture(a, &graph));
    cuda_ok(cudaGraphInstantiate(&exec, graph, 0));
    cuda_ok(cudaGraphLaunch(exec, a));
    cuda_ok(cudaStreamWaitEvent(b, event, 0));
    note(b, &e[1]);
    cuda_ok(cudaEventSynchronize(event));
    ck_assert_int_eq(j.text[0], 'g');
    cuda_ok(cudaDeviceSynchronize());
    ck_assert_str_eq(j.text, "gw");
    cuda_ok(cudaGraphExecDestroy(exec));
    cuda_ok(cudaGraphDestroy(graph));
    free_event(event);
    free_stream(a);
    free_stream(b);
  }
}
END_TEST

/* Calls that a capture forbids fail with CUDA's code and spoil it. */
typedef struct scene {
  cudaStream_t stream, other;
  cudaEvent_t captured, outside;
  char *device;
} scene;

static cudaError_t forbid_stream_sync(const scene *s) {
  return cudaStreamSynchronize(s->stream);
}
static cudaError_t forbid_device_sync(const scene *s) {
  return (void)s, cudaDeviceSynchronize();
}
static cudaError_t forbid_query(const scene *s) {
  return cudaEventQuery(s->captured);
}
static cudaError_t forbid_malloc(const scene *s) {
  return (void)s, cudaMalloc(&(void *){NULL}, 100);
}
static cudaError_t forbid_pageable(const scene *s) {
  char host[4] = {0};
  return cudaMemcpyAsync(s->device, host, sizeof host, cudaMemcpyHostToDevice, s->stream);
}
static cudaError_t forbid_outside_event(const scene *s) {
  return cudaStreamWaitEvent(s->stream, s->outside, 0);
}
static cudaError_t forbid_merge(const scene *s) {
  cuda_ok(cudaStreamBeginCapture(s->other, cudaStreamCaptureModeRelaxed));
  cudaError_t error = cudaStreamWaitEvent(s->other, s->captured, 0);
  cudaGraph_t none;
  cuda_gives(cudaStreamEndCapture(s->other, &none), cudaErrorStreamCaptureInvalidated);
  return error;
}
static cudaError_t forbid_unmatched_end(const scene *s) {
  cudaGraph_t none;
  cuda_ok(cudaStreamWaitEvent(s->other, s->captured, 0));
  return cudaStreamEndCapture(s->other, &none);
}

static const struct {
  cudaError_t (*call)(const scene *);
  enum cudaStreamCaptureMode mode;
  cudaError_t expected;
} forbidden[] = {
    {forbid_stream_sync, cudaStreamCaptureModeRelaxed, cudaErrorStreamCaptureUnsupported},
    {forbid_stream_sync, cudaStreamCaptureModeGlobal, cudaErrorStreamCaptureUnsupported},
    {forbid_device_sync, cudaStreamCaptureModeThreadLocal, cudaErrorStreamCaptureUnsupported},
    {forbid_query, cudaStreamCaptureModeRelaxed, cudaErrorCapturedEvent},
    {forbid_malloc, cudaStreamCaptureModeGlobal, cudaErrorStreamCaptureUnsupported},
    {forbid_pageable, cudaStreamCaptureModeRelaxed, cudaErrorStreamCaptureUnsupported},
    {forbid_outside_event, cudaStreamCaptureModeRelaxed, cudaErrorStreamCaptureIsolation},
    {forbid_merge, cudaStreamCaptureModeRelaxed, cudaErrorStreamCaptureMerge},
    {forbid_unmatched_end, cudaStreamCaptureModeRelaxed, cudaErrorStreamCaptureUnmatched},
};

START_TEST(what_capture_forbids_spoils_it) {
  scene s = {new_stream(), new_stream(), new_event(), new_event(), new_memory(100)};
  enum cudaStreamCaptureStatus status;
  cudaGraph_t graph;
  cuda_ok(cudaEventRecord(s.outside, s.other));
  cuda_ok(cudaStreamBeginCapture(s.stream, forbidden[_i].mode));
  cuda_ok(cudaMemsetAsync(s.device, 0, 100, s.stream));
  cuda_ok(cudaEventRecord(s.captured, s.stream));
  cuda_gives(forbidden[_i].call(&s), forbidden[_i].expected);
  cuda_ok(cudaStreamIsCapturing(s.stream, &status));
  ck_assert_int_eq(status, cudaStreamCaptureStatusInvalidated);
  cuda_gives(cudaMemsetAsync(s.device, 0, 100, s.stream), cudaErrorStreamCaptureInvalidated);
  cuda_gives(cudaStreamEndCapture(s.stream, &graph), cudaErrorStreamCaptureInvalidated);
  ck_assert_ptr_null(graph);
  cuda_ok(cudaStreamIsCapturing(s.stream, &status));
  ck_assert_int_eq(status, cudaStreamCaptureStatusNone);
  /* The event stays one of a capture until it is recorded again. */
  cuda_gives(cudaStreamWaitEvent(s.other, s.captured, 0), cudaErrorCapturedEvent);
  cuda_ok(cudaEventRecord(s.captured, s.stream));
  cuda_ok(cudaStreamWaitEvent(s.other, s.captured, 0));
  cuda_ok(cudaDeviceSynchronize());
  free_stream(s.stream);
  free_stream(s.other);
  free_event(s.captured);
  free_event(s.outside);
  cuda_ok(cudaFree(s.device));
}
END_TEST

START_TEST(forks_must_be_joined) {
  cudaStream_t a = new_stream(), b = new_stream();
  cudaEvent_t event = new_event();
  char *device = new_memory(8);
  cudaGraph_t graph;
  cuda_ok(cudaStreamBeginCapture(a, cudaStreamCaptureModeRelaxed));
  cuda_ok(cudaEventRecord(event, a));
  cuda_ok(cudaStreamWaitEvent(b, event, 0));
  cuda_ok(cudaMemsetAsync(device, 0, 8, b));
  cuda_gives(cudaStreamEndCapture(a, &graph), cudaErrorStreamCaptureUnjoined);
  cuda_gives(cudaStreamEndCapture(b, &graph), cudaErrorIllegalState);
  free_stream(a);
  free_stream(b);
  free_event(event);
  cuda_ok(cudaFree(device));
}
END_TEST

int main(void) {
  Suite *suite = suite_create("emulator_capture");
  TCase *capture = tcase_create("capture");
  tcase_add_test(capture, graphs_run_in_every_order_that_they_allow);
  tcase_add_test(capture, external_events_are_of_the_launch);
  tcase_add_loop_test(capture, what_capture_forbids_spoils_it, 0, sizeof forbidden / sizeof *forbidden);
  tcase_add_test(capture, forks_must_be_joined);
  suite_add_tcase(suite, capture);
  return run_suite(suite);
}
