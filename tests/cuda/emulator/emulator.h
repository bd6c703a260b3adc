/* A stand-in for a GPU: the parts of the CUDA runtime, of cuDNN's backend API and of cuBLASLt that the CUDA plug-in
 * calls, under the libraries' own names, working on host memory. It is a checker: whatever CUDA leaves undefined it
 * does in a random order, and whatever CUDA forbids it reports.
 *
 * Streams are queues. A device thread takes from them in a pseudo-random order that honours stream order and events
 * alone, when a call synchronises, now and then when a call enqueues, and when the program makes no calls for a while.
 * One seed gives one order to a program with one thread.
 *
 * Code is loaded lazily: what a kernel of the libraries runs with takes device memory from its first launch on.
 *
 * Environment, read at the first call:
 *   EMULATED_CUDA_SEED=N      the order
 *   EMULATED_CUDA_PRIORITY=1  of streams with work to go on with, those of the highest priority do
 *   EMULATED_CUDA_STAMP_US=N  an event with time takes its stream N microseconds, and has the time behind them
 *   EMULATED_CUDA_DEVICES=0   no device
 *   EMULATED_CUDA_DRIVER=V    what cudaDriverGetVersion gives: `none` is no driver, and one older than the headers
 *                             refuses
 *   EMULATED_CUDA_ARCH=90     compute capability
 *   EMULATED_CUDA_MEMORY=N    bytes of device memory
 *   EMULATED_CUDA_OTHERS=N    bytes of it that other processes have
 *   EMULATED_CUDA_FAIL=F:N    the N-th call of function F fails (out of memory where it allocates)
 *   EMULATED_CUDA_FAULT=K:N   the N-th kernel to run, by whatever library, goes wrong as K says: `hang` never ends,
 *                             `die` kills the process (SIGKILL), `corrupt` flips a bit of what it puts out (where it
 *                             puts out nothing, the next one's), `sticky` ends the context with an illegal address:
 *                             every later call fails, and nothing that is enqueued is done. K:N:NAME counts kernels
 *                             only whose name begins with NAME: `convolution E V D` is that of cuDNN's engine E with
 *                             its first knob at V, forward (D = 0), by data (1) or by filter (2); `matrix product` is
 *                             cuBLASLt's, and `kernel` any other
 *   EMULATED_CUDNN_CUDA=V     the CUDA that cuDNN is made for
 *   EMULATED_CUDNN_FAILS=E    plans of cuDNN's engine E can be made, and fail when they are executed
 *   EMULATED_CUDA_PROTECT=1   host code that touches device memory faults
 *   EMULATED_CUDA_STRICT=1    misuse and leaks make the process exit with 99; PROTECT as well
 * Misuse is always told on stderr. */
#ifndef TESTS_CUDA_EMULATOR_H
#define TESTS_CUDA_EMULATOR_H

#include <cuda_runtime_api.h>
#include <stdint.h>

#ifdef __cplusplus
#include <functional>

/* Enqueues work on device memory, as a kernel launch does. */
cudaError_t emulator_enqueue(cudaStream_t stream, std::function<void()> work);

extern "C" {
#endif

/* A kernel that adds `n` to words of device memory. */
void emulator_add(cudaStream_t stream, uint32_t *words, size_t count, uint32_t n);
/* Calls so far that allocate, register, map or free memory of the device or of the host. */
int64_t emulator_allocations(void);
/* What was reported on stderr so far. */
int64_t emulator_misuses(void);
/* Starts the pseudo-random order anew, for streams made from here on as well. */
void emulator_seed(uint64_t seed);

#ifdef __cplusplus
}
#endif

#endif
