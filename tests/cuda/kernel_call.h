/* One op on the CUDA backend's own kernels, emulated, beside the host's kernel on the same operands: in f32 and in
 * bf16, at several addresses, which must not change a bit, between guards. */
#ifndef TESTS_CUDA_KERNEL_CALL_H
#define TESTS_CUDA_KERNEL_CALL_H

#include "runtime/cuda/ops.h"
#include "tests/support/one_call.h"

enum { MAX_OPERANDS = 8, TEXT = 1024 };

/* --- Numbers ------------------------------------------------------------------------------------------------------ */

uint16_t to_bf16(float value);
float from_bf16(uint16_t value);
float value_at(const rt_operand *of, int64_t i);

/* Starts the pseudo-random numbers over. */
void seed_draws(uint64_t seed);
uint64_t draw(uint64_t below);

/* --- Cases -------------------------------------------------------------------------------------------------------- */

/* An op over tensors whose sizes are letters a to f. `types` has a letter per input, output and side effect:
 *   T f32, then bf16; P f32, and bf16 too where T is; F f32; I i64.
 * `fills` has a letter per input and side effect: u uniform, p positive, q of few different values and rarely
 *   a zero with a sign, an infinity or no number, i ids below size
 * `ids` and a few that are not, y what the forward op makes of input 0. */
typedef struct op_case {
  const char *layout, *tensors, *op, *types, *fills;
  float tolerance; /* 0: exact in f32, and the rounded f32 in bf16 */
  char ids;
} op_case;

typedef struct sizes {
  int64_t of[6];
} sizes;

/* Makes the host's call of a case and fills its operands. */
void open_case(const op_case *c, const sizes *with, int64_t batch, one_call *one);
/* Runs an open case on the host, and on the device in every precision that it takes, and compares. */
void check_call(const op_case *c, one_call *one, const rt_launch *launch);
/* Opens and checks a case, also with its outputs accumulating where they can. */
void check_case(const op_case *c, const sizes *with, int64_t batch);

/* --- The device's side -------------------------------------------------------------------------------------------- */

typedef struct buffer {
  const void *host; /* the operand's data there */
  char *memory, *data;
  int64_t bytes;
} buffer;

typedef struct device_call {
  rt_call call;
  rt_operand operands[MAX_OPERANDS * 2];
  buffer buffers[MAX_OPERANDS * 2];
  int n_buffers;
  buffer workspace;
} device_call;

/* `bytes` bytes between guards, the first at `offset` from an aligned address. */
buffer buffer_new(const void *host, int64_t bytes, int64_t offset, int content);
/* Fails the test when a guard has been written to. */
void buffer_check(const buffer *of, const char *what);

/* The host's call on the device with its T operands (t16) and P operands (p16) in bf16, `apart` at odd addresses. */
void device_open(device_call *device, const rt_call *host, const rt_cuda_op *op, const char *types, bool t16, bool p16,
                 bool apart);
void device_close(device_call *device);
/* Runs the op with the step by value or in device memory, and checks all guards. */
void device_run(device_call *device, const rt_cuda_op *op, const rt_launch *launch, bool by_pointer);
/* `tolerance` is of the largest element; 0: `got` is exactly `want`, rounded to its type. */
void check_output(const rt_operand *got, const rt_operand *want, float tolerance, const char *what);

#endif
