/* What a process on the emulated device ends with, and the machines that it can be made to find. */
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/cuda/emulated.h"

/* The exit status of a process that does so under the settings, NULL at their end. */
static int status_of(void (*body)(void), const char *const *settings) {
  pid_t child = fork();
  ck_assert_int_ge(child, 0);
  if (child == 0) {
    for (; *settings != NULL; settings += 2) setenv(settings[0], settings[1], 1);
    if (freopen("/dev/null", "w", stderr) == NULL) _exit(98);
    body();
    exit(0);
  }
  int status;
  ck_assert_int_eq(waitpid(child, &status, 0), child);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

static void do_nothing(void) {}
static void do_right(void) {
  cudaStream_t stream = new_stream();
  cudaEvent_t event = new_event();
  void *device = new_memory(10);
  if (cudaMemsetAsync(device, 0, 10, stream) != cudaSuccess || cudaDeviceSynchronize() != cudaSuccess) _exit(97);
  free_event(event);
  free_stream(stream);
  cuda_ok(cudaFree(device));
}
static void leak_stream(void) {
  new_stream();
}
static void leak_event(void) {
  new_event();
}
static void leak_memory(void) {
  new_memory(10);
}
static void leak_registration(void) {
  static char memory[10];
  cuda_ok(cudaHostRegister(memory, sizeof memory, 0));
}
static void leak_graph(void) {
  cudaStream_t stream = new_stream();
  cudaGraph_t graph;
  cuda_ok(cudaStreamBeginCapture(stream, cudaStreamCaptureModeRelaxed));
  cuda_ok(cudaStreamEndCapture(stream, &graph));
  free_stream(stream);
}
static void destroy_twice(void) {
  cudaEvent_t event = new_event();
  free_event(event);
  if (cudaEventDestroy(event) != cudaErrorInvalidResourceHandle) _exit(97);
}
static void mix_up(void) {
  cudaEvent_t event = new_event();
  if (cudaStreamSynchronize((cudaStream_t)event) != cudaErrorInvalidResourceHandle) _exit(97);
  free_event(event);
}
static void use_default_stream(void) {
  void *device = new_memory(10);
  if (cudaMemsetAsync(device, 0, 10, NULL) == cudaSuccess) _exit(97);
  cuda_ok(cudaFree(device));
}
static void leave_work(void) {
  cudaStream_t stream = new_stream();
  void *device = new_memory(10);
  for (int i = 0; i < 200; i++) cuda_ok(cudaMemsetAsync(device, 0, 10, stream));
  free_stream(stream);
}
static void write_before(void) {
  char *device = new_memory(10);
  memset(device - 1, 0, 1);
  cuda_ok(cudaFree(device));
}
static void write_after(void) {
  char *device = new_memory(10);
  memset(device + 10, 0, 1);
  cuda_ok(cudaFree(device));
}
static void write_from_host(void) {
  char *device = new_memory(10);
  do_right();
  device[0] = 0;
  cuda_ok(cudaFree(device));
}

static const struct {
  void (*body)(void);
  int status;
} endings[] = {
    {do_nothing, 0},
    {do_right, 0},
    {leak_stream, 99},
    {leak_event, 99},
    {leak_memory, 99},
    {leak_graph, 99},
    {mix_up, 99},
    {leave_work, 99},
    {use_default_stream, 99},
    {leak_registration, 99},
    {write_before, 99},
    {write_after, 99},
    {destroy_twice, 99},
    {write_from_host, -SIGSEGV},
};

START_TEST(strict_processes_end_badly_after_misuse) {
  bool open = endings[_i].body == write_before || endings[_i].body == write_after;
  const char *const strict[] = {"EMULATED_CUDA_STRICT", "1", open ? "EMULATED_CUDA_PROTECT" : NULL, "0", NULL};
  const char *const lax[] = {NULL};
  ck_assert_int_eq(status_of(endings[_i].body, strict), endings[_i].status);
  ck_assert_int_eq(status_of(endings[_i].body, lax), 0);
}
END_TEST

static void find_no_device(void) {
  int n = 7;
  if (cudaGetDeviceCount(&n) != cudaErrorNoDevice || n != 0) _exit(97);
  if (cudaFree(NULL) != cudaErrorNoDevice) _exit(97);
}
static void find_no_driver(void) {
  int n = 7;
  if (cudaGetDeviceCount(&n) != cudaErrorInsufficientDriver) _exit(97);
  if (cudaDriverGetVersion(&n) != cudaSuccess || n != 0) _exit(97);
}
static void fail_third(void) {
  void *a[3];
  for (int i = 0; i < 2; i++) a[i] = new_memory(1);
  if (cudaMalloc(&a[2], 1) != cudaErrorMemoryAllocation) _exit(97);
  for (int i = 0; i < 2; i++) cuda_ok(cudaFree(a[i]));
}

START_TEST(machines_can_lack_things) {
  ck_assert_int_eq(status_of(find_no_device, (const char *const[]){"EMULATED_CUDA_DEVICES", "0", NULL}), 0);
  ck_assert_int_eq(status_of(find_no_driver, (const char *const[]){"EMULATED_CUDA_DRIVER", "none", NULL}), 0);
  ck_assert_int_eq(status_of(fail_third, (const char *const[]){"EMULATED_CUDA_FAIL", "cudaMalloc:3", NULL}), 0);
}
END_TEST

/* --- Faults ------------------------------------------------------------------------------------------------------- */

enum { KERNELS = 5, WORDS = 8 };

/* Kernel k adds k to every word: their sum is 15 unless one of them goes wrong. */
static void CUDART_CB set_flag(void *flag) {
  *(bool *)flag = true;
}

/* Enqueues the kernels and a host function behind them; what the device then says. */
static cudaError_t run_kernels(cudaStream_t stream, uint32_t *device, bool *reached) {
  cuda_ok(cudaMemsetAsync(device, 0, WORDS * sizeof *device, stream));
  for (uint32_t k = 1; k <= KERNELS; k++) emulator_add(stream, device, WORDS, k);
  (void)cudaLaunchHostFunc(stream, set_flag, reached);
  return cudaStreamSynchronize(stream);
}

static void count_wrong_words(void) {
  cudaStream_t stream = new_stream();
  uint32_t *device = new_memory(WORDS * sizeof *device), words[WORDS];
  bool reached = false;
  int wrong = 0;
  cuda_ok(run_kernels(stream, device, &reached));
  cuda_ok(cudaMemcpyAsync(words, device, sizeof words, cudaMemcpyDeviceToHost, stream));
  for (int i = 0; i < WORDS; i++) wrong += words[i] != KERNELS * (KERNELS + 1) / 2;
  free_stream(stream);
  cuda_ok(cudaFree(device));
  if (!reached) _exit(97);
  if (wrong > 0) _exit(wrong);
}
static void end_in_error(void) {
  cudaStream_t stream = new_stream();
  uint32_t *device = new_memory(WORDS * sizeof *device);
  bool reached = false;
  if (run_kernels(stream, device, &reached) != cudaErrorIllegalAddress || reached) _exit(97);
  /* Every call fails from now on, and the error cannot be taken away. */
  if (cudaFree(device) != cudaErrorIllegalAddress || cudaGetLastError() != cudaErrorIllegalAddress ||
      cudaGetLastError() != cudaErrorIllegalAddress)
    _exit(97);
}
static void never_end(void) {
  signal(SIGALRM, SIG_DFL);
  alarm(1);
  count_wrong_words();
}

START_TEST(kernels_can_go_wrong) {
  static const struct {
    const char *fault;
    void (*body)(void);
    int status;
  } faults[] = {{"none:1", count_wrong_words, 0},        {"corrupt:3", count_wrong_words, 1},
                {"corrupt:6", count_wrong_words, 0}, /* there are but five */
                {"die:2", count_wrong_words, -SIGKILL},  {"hang:5", never_end, -SIGALRM},
                {"sticky:1", end_in_error, 0},           {"sticky:5", end_in_error, 0},
                {"corrupt:3:ker", count_wrong_words, 1}, {"corrupt:1:convolution", count_wrong_words, 0}};
  for (size_t i = 0; i < sizeof faults / sizeof *faults; i++) {
    const char *const settings[] = {"EMULATED_CUDA_FAULT", faults[i].fault, "EMULATED_CUDA_STRICT", "1", NULL};
    int status = status_of(faults[i].body, settings);
    ck_assert_msg(status == faults[i].status, "%s: %d", faults[i].fault, status);
  }
}
END_TEST

int main(void) {
  Suite *suite = suite_create("emulator_process");
  TCase *process = tcase_create("process");
  tcase_add_loop_test(process, strict_processes_end_badly_after_misuse, 0, sizeof endings / sizeof *endings);
  tcase_add_test(process, machines_can_lack_things);
  tcase_add_test(process, kernels_can_go_wrong);
  suite_add_tcase(suite, process);
  return run_suite(suite);
}
