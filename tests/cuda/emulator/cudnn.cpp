/* cuDNN's handle, and its backend's execution of convolutions. */
#include <algorithm>
#include <cstdio>

#include "descriptors.h"

namespace emulator {

namespace {

constexpr int64_t handle_bytes = int64_t{16} << 20, workspace_alignment = 16;

/* Attributes of an operation by their part in a convolution. */
struct Names {
  Direction direction;
  int x, w, y, conv, alpha, beta;
};

#define NAMES(DIRECTION, PREFIX, X, W, Y) \
  { DIRECTION, PREFIX##_##X, PREFIX##_##W, PREFIX##_##Y, PREFIX##_CONV_DESC, PREFIX##_ALPHA, PREFIX##_BETA }

Names names_of(const Descriptor &operation) {
  switch (static_cast<int>(operation.type)) {
    case CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR:
      return NAMES(Direction::backward_data, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA, DX, W, DY);
    case CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR:
      return NAMES(Direction::backward_filter, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER, X, DW, DY);
    default:
      return NAMES(Direction::forward, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD, X, W, Y);
  }
}

/* False: not of as many dimensions as the convolution. */
bool tensor_of(const Descriptor &d, size_t spatial, Tensor *out, bool *emulated) {
  auto dims = d.array<int64_t>(CUDNN_ATTR_TENSOR_DIMENSIONS), strides = d.array<int64_t>(CUDNN_ATTR_TENSOR_STRIDES);
  auto type = d.scalar<cudnnDataType_t>(CUDNN_ATTR_TENSOR_DATA_TYPE, CUDNN_DATA_FLOAT);
  *emulated = *emulated && (type == CUDNN_DATA_FLOAT || type == CUDNN_DATA_BFLOAT16);
  out->type = type == CUDNN_DATA_BFLOAT16 ? Number::bf16 : Number::f32;
  if (dims.size() != spatial + 2) return false;
  for (size_t i = 0; i < 2 + max_spatial; i++) {
    out->dims[i] = i < dims.size() ? dims[i] : 1;
    out->strides[i] = i < dims.size() ? strides[i] : 0;
  }
  return true;
}

/* A tensor's memory in a variant pack. */
struct Operand {
  char *at;
  int64_t bytes;
};

cudnnStatus_t operand_of(const Descriptor &tensor, const Tensor &shape, const Descriptor &pack, Operand *out) {
  auto uids = pack.array<int64_t>(CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS);
  auto pointers = pack.array<char *>(CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS);
  auto found = std::find(uids.begin(), uids.end(), tensor.scalar<int64_t>(CUDNN_ATTR_TENSOR_UNIQUE_ID, 0));
  if (found == uids.end()) return refuse(CUDNN_STATUS_BAD_PARAM, "a tensor is not in the variant pack");
  *out = {pointers[static_cast<size_t>(found - uids.begin())], extent(shape) * size_of(shape.type)};
  if (reinterpret_cast<uintptr_t>(out->at) %
          static_cast<uintptr_t>(tensor.scalar<int64_t>(CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, 1)) !=
      0) {
    misuse("a tensor is not aligned as its descriptor says");
    return refuse(CUDNN_STATUS_BAD_PARAM_MISALIGNED_POINTER, "alignment");
  }
  if (!on_device(out->at, static_cast<size_t>(out->bytes))) {
    misuse("a tensor of %lld bytes is not in device memory", static_cast<long long>(out->bytes));
    return refuse(CUDNN_STATUS_BAD_PARAM, "memory");
  }
  return CUDNN_STATUS_SUCCESS;
}

bool overlap(const Operand &a, const Operand &b) {
  return a.at < b.at + b.bytes && b.at < a.at + a.bytes;
}

cudnnStatus_t workspace_of(const Descriptor &pack, int64_t bytes, Operand *out) {
  *out = {pack.scalar<char *>(CUDNN_ATTR_VARIANT_PACK_WORKSPACE, nullptr), bytes};
  if (bytes == 0) return CUDNN_STATUS_SUCCESS;
  if (out->at == nullptr) return refuse(CUDNN_STATUS_BAD_PARAM_NULL_POINTER, "no workspace");
  if (reinterpret_cast<uintptr_t>(out->at) % workspace_alignment != 0)
    return refuse(CUDNN_STATUS_BAD_PARAM_MISALIGNED_POINTER, "alignment of the workspace");
  if (on_device(out->at, static_cast<size_t>(bytes))) return CUDNN_STATUS_SUCCESS;
  misuse("a workspace of %lld bytes is not in device memory", static_cast<long long>(bytes));
  return refuse(CUDNN_STATUS_BAD_PARAM, "memory");
}

/* There is one for each direction. */
std::string kernel_of(const Method &method, Direction direction) {
  return method.kernel + " " + std::to_string(static_cast<int>(direction));
}

/* They are loaded when they run first. */
bool load_kernels(const Method &method, Direction direction) {
  constexpr int64_t transform_bytes = int64_t{300} << 20;
  return load_code(kernel_of(method, direction), method.code_bytes) &&
         (!method.transforms || load_code("transform", transform_bytes));
}

uint64_t draw(uint64_t n) {
  std::lock_guard<std::mutex> lock(mutex());
  return random_below(n);
}

}  // namespace

bool conv_of(const Descriptor &operation, Conv *out, bool *emulated) {
  const Names names = names_of(operation);
  const Descriptor &conv = operation.descriptor(names.conv);
  auto spatial = static_cast<size_t>(conv.scalar<int64_t>(CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS, 0));
  *emulated = conv.scalar<cudnnDataType_t>(CUDNN_ATTR_CONVOLUTION_COMP_TYPE, CUDNN_DATA_FLOAT) == CUDNN_DATA_FLOAT;
  if (!tensor_of(operation.descriptor(names.x), spatial, &out->x, emulated) ||
      !tensor_of(operation.descriptor(names.w), spatial, &out->w, emulated) ||
      !tensor_of(operation.descriptor(names.y), spatial, &out->y, emulated))
    return false;
  auto read = [&](int attribute, int64_t otherwise, int64_t *to) {
    auto all = conv.array<int64_t>(attribute);
    for (size_t i = 0; i < max_spatial; i++) to[i] = i < all.size() ? all[i] : otherwise;
  };
  read(CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, 0, out->pre);
  read(CUDNN_ATTR_CONVOLUTION_POST_PADDINGS, 0, out->post);
  read(CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, 1, out->strides);
  read(CUDNN_ATTR_CONVOLUTION_DILATIONS, 1, out->dilations);
  out->direction = names.direction;
  out->flipped = conv.scalar<int>(CUDNN_ATTR_CONVOLUTION_CONV_MODE, 0) == CUDNN_CONVOLUTION;
  out->alpha = operation.scalar<float>(names.alpha, 1);
  out->beta = operation.scalar<float>(names.beta, 0);
  return true;
}

namespace {

cudnnStatus_t execute(Call &call, Stream &stream, const Descriptor &plan, const Descriptor &pack) {
  const Descriptor &operation = operation_of(plan);
  const Names names = names_of(operation);
  const Method method = method_of(plan);
  if (!method.runs) return refuse(CUDNN_STATUS_EXECUTION_FAILED, "the engine fails");
  Conv conv;
  bool emulated;
  conv_of(operation, &conv, &emulated);
  Operand x, w, y, space;
  for (cudnnStatus_t status :
       {operand_of(operation.descriptor(names.x), conv.x, pack, &x),
        operand_of(operation.descriptor(names.w), conv.w, pack, &w),
        operand_of(operation.descriptor(names.y), conv.y, pack, &y), workspace_of(pack, method.workspace, &space)})
    if (status != CUDNN_STATUS_SUCCESS) return status;
  const Operand &out = names.direction == Direction::forward ? y : names.direction == Direction::backward_data ? x : w;
  bool aliased = false;
  for (const Operand *operand : {&x, &w, &y})
    aliased = aliased || overlap(*operand, space) || (operand != &out && overlap(*operand, out));
  if (aliased) {
    misuse("the output or the workspace overlaps another operand");
    return refuse(CUDNN_STATUS_BAD_PARAM, "overlap");
  }
  if (!load_kernels(method, names.direction)) return refuse(CUDNN_STATUS_INTERNAL_ERROR, "no memory for the code");
  auto work = [=] {
    /* A workspace comes with anything in it and is left so. */
    if (space.bytes > 0) fill_ends(space.at, 0xff, static_cast<size_t>(space.bytes));
    convolve(conv, method.order, method.tf32, x.at, w.at, y.at, draw);
    if (space.bytes > 0) fill_ends(space.at, 0x7f, static_cast<size_t>(space.bytes));
  };
  return submit(call, stream, Work{kernel_of(method, names.direction), {work}, Kind::kernel}) == cudaSuccess
             ? CUDNN_STATUS_SUCCESS
             : refuse(CUDNN_STATUS_EXECUTION_FAILED_CUDART, "the stream did not take it");
}

}  // namespace

}  // namespace emulator

using namespace emulator;

#define CUDNN_CALL()              \
  Call call(__func__, allocates); \
  if (call.error() != cudaSuccess) return refuse(CUDNN_STATUS_NOT_INITIALIZED, cudaGetErrorString(call.error()))

size_t cudnnGetVersion(void) {
  return CUDNN_VERSION;
}

size_t cudnnGetCudartVersion(void) {
  const char *given = getenv("EMULATED_CUDNN_CUDA");
  return given ? strtoul(given, nullptr, 10) : CUDART_VERSION;
}

const char *cudnnGetErrorString(cudnnStatus_t status) {
  static const std::map<int, const char *> names = {
#define NAME(s) {s, #s}
      NAME(CUDNN_STATUS_SUCCESS),
      NAME(CUDNN_STATUS_NOT_INITIALIZED),
      NAME(CUDNN_STATUS_BAD_PARAM),
      NAME(CUDNN_STATUS_BAD_PARAM_NULL_POINTER),
      NAME(CUDNN_STATUS_BAD_PARAM_MISALIGNED_POINTER),
      NAME(CUDNN_STATUS_BAD_PARAM_NOT_FINALIZED),
      NAME(CUDNN_STATUS_BAD_PARAM_ATTRIBUTE_TYPE),
      NAME(CUDNN_STATUS_BAD_PARAM_DESCRIPTOR_TYPE),
      NAME(CUDNN_STATUS_NOT_SUPPORTED),
      NAME(CUDNN_STATUS_NOT_SUPPORTED_GRAPH_PATTERN),
      NAME(CUDNN_STATUS_INTERNAL_ERROR),
      NAME(CUDNN_STATUS_EXECUTION_FAILED_CUDART),
  };
  auto found = names.find(status);
  return found == names.end() ? "CUDNN_STATUS_UNKNOWN" : found->second;
}

cudnnStatus_t cudnnCreate(cudnnHandle_t *out) {
  CUDNN_CALL();
  take_device_bytes(handle_bytes);
  *out = static_cast<cudnnHandle_t>(hold(std::make_shared<CudnnHandle>()));
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnDestroy(cudnnHandle_t handle) {
  CUDNN_CALL();
  if (held<CudnnHandle>(handle) == nullptr) return refuse(CUDNN_STATUS_BAD_PARAM, "not a handle");
  take_device_bytes(-handle_bytes);
  drop_label(handle);
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnSetStream(cudnnHandle_t handle, cudaStream_t stream) {
  Call call(__func__);
  auto h = held<CudnnHandle>(handle);
  if (h == nullptr || stream_of(stream) == nullptr) return refuse(CUDNN_STATUS_BAD_PARAM, "not a handle or a stream");
  h->stream = stream;
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnGetStream(cudnnHandle_t handle, cudaStream_t *out) {
  Call call(__func__);
  auto h = held<CudnnHandle>(handle);
  if (h == nullptr) return refuse(CUDNN_STATUS_BAD_PARAM, "not a handle");
  *out = h->stream;
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnBackendExecute(cudnnHandle_t handle, cudnnBackendDescriptor_t plan, cudnnBackendDescriptor_t pack) {
  Call call(__func__);
  if (call.error() != cudaSuccess)
    return refuse(CUDNN_STATUS_EXECUTION_FAILED_CUDART, cudaGetErrorString(call.error()));
  auto h = held<CudnnHandle>(handle);
  auto p = held<Descriptor>(plan), v = held<Descriptor>(pack);
  if (h == nullptr || p == nullptr || v == nullptr || p->type != CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR ||
      v->type != CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR)
    return refuse(CUDNN_STATUS_BAD_PARAM, "handle, plan and variant pack are due");
  if (!p->final || !v->final) return refuse(CUDNN_STATUS_BAD_PARAM_NOT_FINALIZED, "plan or variant pack");
  if (!p->has(CUDNN_ATTR_EXECUTION_PLAN_HANDLE))
    return refuse(CUDNN_STATUS_BAD_PARAM, "the plan was made without a handle");
  auto stream = stream_of(h->stream);
  if (stream == nullptr) return refuse(CUDNN_STATUS_BAD_PARAM, "no stream");
  return execute(call, *stream, *p, *v);
}
