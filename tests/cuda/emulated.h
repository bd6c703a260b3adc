/* For tests on the emulated device. Each is a process of its own, which reads its environment at its first call. */
#ifndef TESTS_CUDA_EMULATED_H
#define TESTS_CUDA_EMULATED_H

#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "tests/cuda/emulator/emulator.h"

#define cuda_ok(call) cuda_gives(call, cudaSuccess)

#define cuda_gives(call, expected)                                                         \
  do {                                                                                     \
    cudaError_t error_ = (call);                                                           \
    ck_assert_msg(error_ == (expected), "%s: %s, not %s", #call, cudaGetErrorName(error_), \
                  cudaGetErrorName(expected));                                             \
  } while (0)

static inline cudaStream_t new_stream(void) {
  cudaStream_t stream;
  cuda_ok(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  return stream;
}

static inline cudaEvent_t new_event(void) {
  cudaEvent_t event;
  cuda_ok(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
  return event;
}

static inline void *new_memory(size_t bytes) {
  void *memory;
  cuda_ok(cudaMalloc(&memory, bytes));
  return memory;
}

static inline void free_stream(cudaStream_t stream) {
  cuda_ok(cudaStreamDestroy(stream));
}
static inline void free_event(cudaEvent_t event) {
  cuda_ok(cudaEventDestroy(event));
}

/* What ran, in its order. */
typedef struct journal {
  int n;
  char text[64];
} journal;

typedef struct entry {
  journal *journal;
  char what;
} entry;

static inline void CUDART_CB write_journal(void *data) {
  const entry *e = data;
  e->journal->text[e->journal->n++] = e->what;
}

/* Has the stream write into the journal when it gets there. */
static inline void note(cudaStream_t stream, entry *e) {
  cuda_ok(cudaLaunchHostFunc(stream, write_journal, e));
}

static inline int run_suite(Suite *suite) {
  SRunner *runner = srunner_create(suite);
  srunner_run_all(runner, CK_NORMAL);
  int failed = srunner_ntests_failed(runner);
  srunner_free(runner);
  return failed != 0;
}

#endif
