/* cuDNN's backend descriptors: typed attributes, frozen by cudnnBackendFinalize. */
#ifndef TESTS_CUDA_EMULATOR_DESCRIPTORS_H
#define TESTS_CUDA_EMULATOR_DESCRIPTORS_H

#include <cudnn.h>

#include <map>

#include "conv.h"
#include "internal.h"

namespace emulator {

struct Descriptor;

constexpr int64_t engine_count = 13;  // their indices are below

struct Value {
  cudnnBackendAttributeType_t type;
  int64_t count;
  std::vector<char> bytes;
  std::vector<std::shared_ptr<const Descriptor>> descriptors;  // instead of bytes
};

struct Descriptor {
  static constexpr const char *kind = "cuDNN descriptor";
  cudnnBackendDescriptorType_t type;
  bool final = false;
  std::map<int, Value> values;

  bool has(int attribute) const { return values.count(attribute) != 0; }
  const Value &value(int attribute) const { return values.at(attribute); }
  const Descriptor &descriptor(int attribute) const { return *values.at(attribute).descriptors.at(0); }

  template <class T>
  std::vector<T> array(int attribute) const {
    if (!has(attribute)) return {};
    const Value &from = value(attribute);
    std::vector<T> out(static_cast<size_t>(from.count));
    if (!out.empty()) memcpy(out.data(), from.bytes.data(), from.bytes.size());
    return out;
  }
  template <class T>
  T scalar(int attribute, T otherwise) const {
    std::vector<T> all = array<T>(attribute);
    return all.empty() ? otherwise : all[0];
  }
  template <class T>
  void put(int attribute, cudnnBackendAttributeType_t as, const std::vector<T> &all) {
    const char *begin = reinterpret_cast<const char *>(all.data());
    values[attribute] = {as, static_cast<int64_t>(all.size()), {begin, begin + all.size() * sizeof(T)}, {}};
  }
  void refer(int attribute, std::vector<std::shared_ptr<const Descriptor>> to) {
    values[attribute] = {CUDNN_TYPE_BACKEND_DESCRIPTOR, static_cast<int64_t>(to.size()), {}, std::move(to)};
  }
};

struct CudnnHandle {
  static constexpr const char *kind = "cuDNN handle";
  cudaStream_t stream = nullptr;
};

/* What a descriptor needs to be made final beyond the attributes that it has to have; fills those it gives. Of
 * engines.cpp: engine, engine configuration, heuristics and execution plan. */
cudnnStatus_t finish_engine(Descriptor &engine);
cudnnStatus_t finish_config(Descriptor &config);
cudnnStatus_t finish_heuristics(Descriptor &heuristics);
cudnnStatus_t finish_plan(Descriptor &plan);

/* The convolution of an operation; false where the tensors do not have its dimensions. `emulated`: whether their
 * types and the type of the sum are. */
bool conv_of(const Descriptor &operation, Conv *out, bool *emulated);

/* How an execution plan does it, and what. */
struct Method {
  Order order;
  bool tf32;
  int64_t workspace;
  bool runs;  // else its plans are made and fail when they are executed
  std::string kernel;
  int64_t code_bytes;  // of the kernel
  bool transforms;     // runs another kernel too, which engines share
};
Method method_of(const Descriptor &plan);
const Descriptor &operation_of(const Descriptor &plan);

/* Text for cudnnGetLastErrorString, of this thread. */
cudnnStatus_t refuse(cudnnStatus_t status, const char *why);

}  // namespace emulator

#endif
