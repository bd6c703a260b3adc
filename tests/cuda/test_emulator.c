/* The emulated device's streams: that they take the freedom which CUDA takes and keep the promises which CUDA gives. */
#include <stdatomic.h>
#include <stdbool.h>
#include <time.h>

#include "tests/cuda/emulated.h"

enum { SEEDS = 40, MAX_STREAMS = 4 };

static void seed(int n) {
  emulator_seed((uint64_t)n * 7919 + 1);
}

/* --- Order -------------------------------------------------------------------------------------------------------- */

/* Streams A and B of two pieces of work each, unordered: all six interleavings occur, none breaks a stream's order. */
START_TEST(unordered_streams_interleave_in_every_way) {
  static const char *const ways[] = {"aAbB", "abAB", "abBA", "baAB", "baBA", "bBaA"};
  int seen[6] = {0};
  for (int i = 0; i < 8 * SEEDS; i++) {
    seed(i);
    journal j = {0};
    entry e[] = {{&j, 'a'}, {&j, 'b'}, {&j, 'A'}, {&j, 'B'}};
    cudaStream_t a = new_stream(), b = new_stream();
    note(a, &e[0]);
    note(b, &e[1]);
    note(a, &e[2]);
    note(b, &e[3]);
    cuda_ok(cudaDeviceSynchronize());
    int way = 0;
    while (way < 6 && strcmp(j.text, ways[way]) != 0) way++;
    ck_assert_msg(way < 6, "%s", j.text);
    seen[way]++;
    free_stream(a);
    free_stream(b);
  }
  for (int way = 0; way < 6; way++) ck_assert_msg(seen[way] > 0, "%s never", ways[way]);
}
END_TEST

START_TEST(one_seed_is_one_order) {
  char first[64] = "";
  for (int i = 0; i < 3; i++) {
    emulator_seed(5);
    journal j = {0};
    cudaStream_t streams[MAX_STREAMS];
    entry e[40];
    for (int s = 0; s < MAX_STREAMS; s++) streams[s] = new_stream();
    for (int k = 0; k < 40; k++) {
      e[k] = (entry){&j, (char)('0' + k)};
      note(streams[k % MAX_STREAMS], &e[k]);
    }
    cuda_ok(cudaDeviceSynchronize());
    for (int s = 0; s < MAX_STREAMS; s++) free_stream(streams[s]);
    if (i == 0) strcpy(first, j.text);
    ck_assert_str_eq(j.text, first);
  }
}
END_TEST

/* What comes after a wait comes after the record that was the latest when the wait was called, and no later one. */
START_TEST(waits_are_for_the_latest_record) {
  bool overtaken = false;
  for (int i = 0; i < 4 * SEEDS; i++) {
    seed(i);
    journal j = {0};
    entry e[] = {{&j, '1'}, {&j, '2'}, {&j, 'w'}};
    cudaStream_t a = new_stream(), b = new_stream();
    cudaEvent_t event = new_event();
    cuda_ok(cudaStreamWaitEvent(b, event, 0)); /* never recorded: for nothing */
    note(a, &e[0]);
    cuda_ok(cudaEventRecord(event, a));
    cuda_ok(cudaStreamWaitEvent(b, event, 0));
    note(a, &e[1]);
    cuda_ok(cudaEventRecord(event, a));
    note(b, &e[2]);
    cuda_ok(cudaDeviceSynchronize());
    ck_assert(strchr(j.text, '1') < strchr(j.text, 'w'));
    overtaken = overtaken || strchr(j.text, 'w') < strchr(j.text, '2');
    free_event(event);
    free_stream(a);
    free_stream(b);
  }
  ck_assert(overtaken);
}
END_TEST

START_TEST(synchronising_waits_for_that_and_no_more) {
  bool left = false;
  for (int i = 0; i < 4 * SEEDS; i++) {
    seed(i);
    journal j = {0};
    entry e[] = {{&j, 'a'}, {&j, 'b'}, {&j, 'A'}};
    cudaStream_t a = new_stream(), b = new_stream();
    cudaEvent_t event = new_event();
    note(a, &e[0]);
    cuda_ok(cudaEventRecord(event, a));
    note(b, &e[1]);
    note(a, &e[2]);
    cuda_ok(cudaEventSynchronize(event));
    cuda_ok(cudaEventQuery(event));
    ck_assert_ptr_nonnull(strchr(j.text, 'a'));
    cuda_ok(cudaStreamSynchronize(a));
    ck_assert_ptr_nonnull(strchr(j.text, 'A'));
    left = left || strchr(j.text, 'b') == NULL;
    free_event(event);
    free_stream(a);
    free_stream(b); /* whose work still runs */
    cuda_ok(cudaDeviceSynchronize());
    ck_assert_int_eq(j.n, 3);
  }
  ck_assert(left);
}
END_TEST

/* A program that only polls gets there. */
START_TEST(polling_makes_progress) {
  journal j = {0};
  entry e = {&j, 'a'};
  seed(_i);
  cudaStream_t stream = new_stream();
  cudaEvent_t event = new_event();
  note(stream, &e);
  cuda_ok(cudaEventRecord(event, stream));
  cudaError_t error;
  while ((error = cudaEventQuery(event)) == cudaErrorNotReady) {
  }
  cuda_ok(error);
  ck_assert_int_eq(j.n, 1);
  cuda_ok(cudaStreamQuery(stream));
  free_event(event);
  free_stream(stream);
}
END_TEST

static atomic_bool flag;
static void CUDART_CB set_flag(void *data) {
  (void)data;
  flag = true;
}

/* So does one that waits for a host function without a call, also when the device had nothing to do before. */
START_TEST(waiting_makes_progress) {
  seed(_i);
  const struct timespec moment = {.tv_nsec = 1000000};
  cudaStream_t stream = new_stream();
  for (int i = 0; i < 4; i++) {
    flag = false;
    cuda_ok(cudaLaunchHostFunc(stream, set_flag, NULL));
    while (!flag) nanosleep(&moment, NULL);
    nanosleep(&moment, NULL);
  }
  free_stream(stream);
}
END_TEST

/* A host function may wait for another stream's work, which goes on beside it, but for no other host function: they
 * all have one thread. */
typedef struct awaiting {
  const volatile char *byte;
  const journal *others;
  bool alone; /* no other ran meanwhile */
} awaiting;
static void CUDART_CB await_byte(void *data) {
  const struct timespec moment = {.tv_nsec = 1000000};
  awaiting *a = data;
  int before = a->others->n;
  while (*a->byte == 0) nanosleep(&moment, NULL);
  a->alone = a->others->n == before;
}

START_TEST(host_functions_stall_each_other_and_nothing_else) {
  seed(_i);
  cudaStream_t streams[] = {new_stream(), new_stream(), new_stream()};
  char *device = new_memory(1), *byte;
  void *pinned;
  cuda_ok(cudaMallocHost(&pinned, 1));
  byte = pinned;
  *byte = 0;
  journal j = {0};
  entry e = {&j, 'a'};
  awaiting a = {.byte = byte, .others = &j};
  cuda_ok(cudaLaunchHostFunc(streams[0], await_byte, &a));
  note(streams[1], &e);
  cuda_ok(cudaMemsetAsync(device, 1, 1, streams[2]));
  cuda_ok(cudaMemcpyAsync(byte, device, 1, cudaMemcpyDeviceToHost, streams[2]));
  cuda_ok(cudaDeviceSynchronize());
  ck_assert_int_eq(*byte, 1);
  ck_assert_int_eq(j.n, 1);
  ck_assert(a.alone);
  for (int s = 0; s < 3; s++) free_stream(streams[s]);
  cuda_ok(cudaFree(device));
  cuda_ok(cudaFreeHost(pinned));
}
END_TEST

static cudaError_t inside;
static void CUDART_CB call_cuda(void *data) {
  inside = cudaStreamSynchronize(data);
}

START_TEST(host_functions_cannot_call_cuda) {
  cudaStream_t stream = new_stream();
  cuda_ok(cudaLaunchHostFunc(stream, call_cuda, stream));
  cuda_ok(cudaStreamSynchronize(stream));
  cuda_gives(inside, cudaErrorNotPermitted);
  ck_assert_int_eq(emulator_misuses(), 1);
  free_stream(stream);
}
END_TEST

START_TEST(times_grow_along_a_stream) {
  cudaStream_t stream = new_stream();
  cudaEvent_t begin, end, untimed = new_event();
  float ms = -1;
  cuda_ok(cudaEventCreateWithFlags(&begin, cudaEventDefault));
  cuda_ok(cudaEventCreateWithFlags(&end, cudaEventDefault));
  cuda_ok(cudaEventRecord(begin, stream));
  cuda_ok(cudaEventRecord(end, stream));
  cuda_ok(cudaEventRecord(untimed, stream));
  cuda_ok(cudaStreamSynchronize(stream));
  cuda_ok(cudaEventElapsedTime(&ms, begin, end));
  ck_assert(ms >= 0);
  cuda_gives(cudaEventElapsedTime(&ms, begin, untimed), cudaErrorInvalidResourceHandle);
  free_event(begin);
  free_event(end);
  free_event(untimed);
  free_stream(stream);
}
END_TEST

int main(void) {
  Suite *suite = suite_create("emulator");
  TCase *order = tcase_create("order");
  tcase_add_test(order, unordered_streams_interleave_in_every_way);
  tcase_add_test(order, one_seed_is_one_order);
  tcase_add_test(order, waits_are_for_the_latest_record);
  tcase_add_test(order, synchronising_waits_for_that_and_no_more);
  tcase_add_loop_test(order, polling_makes_progress, 0, 10);
  tcase_add_loop_test(order, waiting_makes_progress, 0, 5);
  tcase_add_loop_test(order, host_functions_stall_each_other_and_nothing_else, 0, 5);
  tcase_add_test(order, host_functions_cannot_call_cuda);
  tcase_add_test(order, times_grow_along_a_stream);
  suite_add_tcase(suite, order);
  return run_suite(suite);
}
