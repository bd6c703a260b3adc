#include "descriptors.h"

#include <algorithm>

namespace emulator {

namespace {

enum Use : unsigned { needed = 1, given = 2 };  // without it nothing is final; read alone

struct Rule {
  int descriptor, attribute, type;
  int64_t most;  // elements
  unsigned use;
  int refers_to;  // of a descriptor attribute: the type; -1: operations
};

constexpr int descriptor_type = CUDNN_TYPE_BACKEND_DESCRIPTOR, operation = -1;
constexpr int64_t any_number = INT64_MAX;

/* An operation's tensors and convolution, and its scaling factors. */
#define OPERATION(D, PREFIX, X, W, Y)                                                            \
  {D, PREFIX##_##X, descriptor_type, 1, needed, CUDNN_BACKEND_TENSOR_DESCRIPTOR},                \
      {D, PREFIX##_##W, descriptor_type, 1, needed, CUDNN_BACKEND_TENSOR_DESCRIPTOR},            \
      {D, PREFIX##_##Y, descriptor_type, 1, needed, CUDNN_BACKEND_TENSOR_DESCRIPTOR},            \
      {D, PREFIX##_CONV_DESC, descriptor_type, 1, needed, CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR}, \
      {D, PREFIX##_ALPHA, CUDNN_TYPE_FLOAT, 1, needed, 0}, {                                     \
    D, PREFIX##_BETA, CUDNN_TYPE_FLOAT, 1, needed, 0                                             \
  }

constexpr int tensor = CUDNN_BACKEND_TENSOR_DESCRIPTOR, convolution = CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR,
              graph = CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR, engine = CUDNN_BACKEND_ENGINE_DESCRIPTOR,
              config = CUDNN_BACKEND_ENGINECFG_DESCRIPTOR, heuristics = CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR,
              choice = CUDNN_BACKEND_KNOB_CHOICE_DESCRIPTOR, knob = CUDNN_BACKEND_KNOB_INFO_DESCRIPTOR,
              plan = CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR, pack = CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR,
              device = CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR;

const Rule rules[] = {
    {tensor, CUDNN_ATTR_TENSOR_DATA_TYPE, CUDNN_TYPE_DATA_TYPE, 1, needed, 0},
    {tensor, CUDNN_ATTR_TENSOR_DIMENSIONS, CUDNN_TYPE_INT64, CUDNN_DIM_MAX, needed, 0},
    {tensor, CUDNN_ATTR_TENSOR_STRIDES, CUDNN_TYPE_INT64, CUDNN_DIM_MAX, needed, 0},
    {tensor, CUDNN_ATTR_TENSOR_UNIQUE_ID, CUDNN_TYPE_INT64, 1, needed, 0},
    {tensor, CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, CUDNN_TYPE_INT64, 1, needed, 0},
    {tensor, CUDNN_ATTR_TENSOR_IS_VIRTUAL, CUDNN_TYPE_BOOLEAN, 1, 0, 0},
    {tensor, CUDNN_ATTR_TENSOR_IS_BY_VALUE, CUDNN_TYPE_BOOLEAN, 1, 0, 0},
    {convolution, CUDNN_ATTR_CONVOLUTION_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, 1, needed, 0},
    {convolution, CUDNN_ATTR_CONVOLUTION_CONV_MODE, CUDNN_TYPE_CONVOLUTION_MODE, 1, needed, 0},
    {convolution, CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS, CUDNN_TYPE_INT64, 1, needed, 0},
    {convolution, CUDNN_ATTR_CONVOLUTION_DILATIONS, CUDNN_TYPE_INT64, max_spatial, needed, 0},
    {convolution, CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, CUDNN_TYPE_INT64, max_spatial, needed, 0},
    {convolution, CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, CUDNN_TYPE_INT64, max_spatial, needed, 0},
    {convolution, CUDNN_ATTR_CONVOLUTION_POST_PADDINGS, CUDNN_TYPE_INT64, max_spatial, needed, 0},
    OPERATION(CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD, X, W,
              Y),
    OPERATION(CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA,
              DX, W, DY),
    OPERATION(CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER, X, DW, DY),
    {graph, CUDNN_ATTR_OPERATIONGRAPH_HANDLE, CUDNN_TYPE_HANDLE, 1, 0, 0},
    {graph, CUDNN_ATTR_OPERATIONGRAPH_OPS, descriptor_type, any_number, needed, operation},
    {graph, CUDNN_ATTR_OPERATIONGRAPH_ENGINE_GLOBAL_COUNT, CUDNN_TYPE_INT64, 1, given, 0},
    {engine, CUDNN_ATTR_ENGINE_OPERATION_GRAPH, descriptor_type, 1, needed, graph},
    {engine, CUDNN_ATTR_ENGINE_GLOBAL_INDEX, CUDNN_TYPE_INT64, 1, needed, 0},
    {engine, CUDNN_ATTR_ENGINE_SM_COUNT_TARGET, CUDNN_TYPE_INT32, 1, 0, 0},
    {engine, CUDNN_ATTR_ENGINE_DEVICEPROP, descriptor_type, 1, 0, device},
    {engine, CUDNN_ATTR_ENGINE_KNOB_INFO, descriptor_type, any_number, given, knob},
    {engine, CUDNN_ATTR_ENGINE_NUMERICAL_NOTE, CUDNN_TYPE_NUMERICAL_NOTE, any_number, given, 0},
    {engine, CUDNN_ATTR_ENGINE_BEHAVIOR_NOTE, CUDNN_TYPE_BEHAVIOR_NOTE, any_number, given, 0},
    {config, CUDNN_ATTR_ENGINECFG_ENGINE, descriptor_type, 1, needed, engine},
    {config, CUDNN_ATTR_ENGINECFG_KNOB_CHOICES, descriptor_type, any_number, 0, choice},
    {config, CUDNN_ATTR_ENGINECFG_WORKSPACE_SIZE, CUDNN_TYPE_INT64, 1, given, 0},
    {heuristics, CUDNN_ATTR_ENGINEHEUR_MODE, CUDNN_TYPE_HEUR_MODE, 1, needed, 0},
    {heuristics, CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, descriptor_type, 1, needed, graph},
    {heuristics, CUDNN_ATTR_ENGINEHEUR_SM_COUNT_TARGET, CUDNN_TYPE_INT32, 1, 0, 0},
    {heuristics, CUDNN_ATTR_ENGINEHEUR_DEVICEPROP, descriptor_type, 1, 0, device},
    {heuristics, CUDNN_ATTR_ENGINEHEUR_RESULTS, descriptor_type, any_number, given, config},
    {choice, CUDNN_ATTR_KNOB_CHOICE_KNOB_TYPE, CUDNN_TYPE_KNOB_TYPE, 1, needed, 0},
    {choice, CUDNN_ATTR_KNOB_CHOICE_KNOB_VALUE, CUDNN_TYPE_INT64, 1, needed, 0},
    {knob, CUDNN_ATTR_KNOB_INFO_TYPE, CUDNN_TYPE_KNOB_TYPE, 1, given, 0},
    {knob, CUDNN_ATTR_KNOB_INFO_MAXIMUM_VALUE, CUDNN_TYPE_INT64, 1, given, 0},
    {knob, CUDNN_ATTR_KNOB_INFO_MINIMUM_VALUE, CUDNN_TYPE_INT64, 1, given, 0},
    {knob, CUDNN_ATTR_KNOB_INFO_STRIDE, CUDNN_TYPE_INT64, 1, given, 0},
    {plan, CUDNN_ATTR_EXECUTION_PLAN_HANDLE, CUDNN_TYPE_HANDLE, 1, 0, 0},
    {plan, CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, descriptor_type, 1, needed, config},
    {plan, CUDNN_ATTR_EXECUTION_PLAN_DEVICEPROP, descriptor_type, 1, 0, device},
    {plan, CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE, CUDNN_TYPE_INT64, 1, given, 0},
    {pack, CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, CUDNN_TYPE_INT64, any_number, needed, 0},
    {pack, CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, CUDNN_TYPE_VOID_PTR, any_number, needed, 0},
    {pack, CUDNN_ATTR_VARIANT_PACK_WORKSPACE, CUDNN_TYPE_VOID_PTR, 1, 0, 0},
    {device, CUDNN_ATTR_DEVICEPROP_DEVICE_ID, CUDNN_TYPE_INT32, 1, 0, 0},
    {device, CUDNN_ATTR_DEVICEPROP_HANDLE, CUDNN_TYPE_HANDLE, 1, 0, 0},
    {device, CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION, CUDNN_TYPE_CHAR, any_number, 0, 0},
};

const Rule *rule_of(int type, int attribute) {
  auto found = std::find_if(std::begin(rules), std::end(rules),
                            [=](const Rule &r) { return r.descriptor == type && r.attribute == attribute; });
  return found == std::end(rules) ? nullptr : found;
}

size_t element_size(int type) {
  switch (type) {
    case CUDNN_TYPE_BOOLEAN:
      return sizeof(bool);
    case CUDNN_TYPE_CHAR:
      return 1;
    case CUDNN_TYPE_INT64:
    case CUDNN_TYPE_DOUBLE:
    case CUDNN_TYPE_VOID_PTR:
    case CUDNN_TYPE_HANDLE:
      return 8;
    default:
      return 4;  // floats and enumerations
  }
}

/* Scaling factors may be doubles, and are kept as floats. */
bool type_fits(const Rule &rule, int type) {
  return type == rule.type || (rule.type == CUDNN_TYPE_FLOAT && type == CUDNN_TYPE_DOUBLE);
}

bool refers_rightly(const Rule &rule, const Descriptor &to) {
  if (rule.refers_to != operation) return to.type == rule.refers_to;
  return to.type >= CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR &&
         to.type <= CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR;
}

cudnnStatus_t refer(Descriptor &from, const Rule &rule, int64_t count, const cudnnBackendDescriptor_t *to) {
  std::vector<std::shared_ptr<const Descriptor>> all;
  for (int64_t i = 0; i < count; i++) {
    auto one = held<Descriptor>(to[i]);
    if (one == nullptr) return refuse(CUDNN_STATUS_BAD_PARAM, "not a descriptor");
    if (!refers_rightly(rule, *one)) {
      misuse("attribute %d is given a descriptor of type %d", rule.attribute, one->type);
      return refuse(CUDNN_STATUS_BAD_PARAM_DESCRIPTOR_TYPE, "a descriptor of another type is due");
    }
    if (!one->final) return refuse(CUDNN_STATUS_BAD_PARAM_NOT_FINALIZED, "a finalized descriptor is due");
    all.push_back(std::move(one));
  }
  from.refer(rule.attribute, std::move(all));
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t finish_tensor(const Descriptor &d) {
  auto dims = d.array<int64_t>(CUDNN_ATTR_TENSOR_DIMENSIONS), strides = d.array<int64_t>(CUDNN_ATTR_TENSOR_STRIDES);
  auto positive = [](int64_t n) { return n > 0; };
  int64_t align = d.scalar<int64_t>(CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, 0);
  return dims.size() == strides.size() && std::all_of(dims.begin(), dims.end(), positive) &&
                 std::all_of(strides.begin(), strides.end(), positive) && align > 0 && (align & (align - 1)) == 0
             ? CUDNN_STATUS_SUCCESS
             : refuse(CUDNN_STATUS_BAD_PARAM, "dimensions, strides or alignment of a tensor");
}

cudnnStatus_t finish_convolution(const Descriptor &d) {
  auto n = static_cast<size_t>(d.scalar<int64_t>(CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS, 0));
  for (int attribute : {CUDNN_ATTR_CONVOLUTION_DILATIONS, CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES,
                        CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, CUDNN_ATTR_CONVOLUTION_POST_PADDINGS})
    if (d.array<int64_t>(attribute).size() != n) return refuse(CUDNN_STATUS_BAD_PARAM, "not one number per dimension");
  return CUDNN_STATUS_SUCCESS;
}

/* Properties are given as text, or read off the device. */
cudnnStatus_t finish_device(Descriptor &d) {
  auto text = d.array<char>(CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION);
  if (!text.empty())
    return text[0] == '{' ? CUDNN_STATUS_SUCCESS : refuse(CUDNN_STATUS_BAD_PARAM, "not an object of JSON");
  if (settings().devices == 0 || (!d.has(CUDNN_ATTR_DEVICEPROP_DEVICE_ID) && !d.has(CUDNN_ATTR_DEVICEPROP_HANDLE)))
    return refuse(CUDNN_STATUS_NOT_INITIALIZED, "no device");
  std::string json = "{\"deviceVer\": " + std::to_string(settings().arch * 10) + "}";
  d.put<char>(CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION, CUDNN_TYPE_CHAR,
              {json.c_str(), json.c_str() + json.size() + 1});
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t finish_graph(Descriptor &d) {
  if (d.value(CUDNN_ATTR_OPERATIONGRAPH_OPS).count != 1)
    return refuse(CUDNN_STATUS_NOT_SUPPORTED_GRAPH_PATTERN, "more than one operation");
  d.put<int64_t>(CUDNN_ATTR_OPERATIONGRAPH_ENGINE_GLOBAL_COUNT, CUDNN_TYPE_INT64, {engine_count});
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t finish_operation(const Descriptor &d) {
  Conv conv;
  bool emulated;
  return conv_of(d, &conv, &emulated) && shapes_fit(conv)
             ? CUDNN_STATUS_SUCCESS
             : refuse(CUDNN_STATUS_BAD_PARAM, "the tensors do not go with the convolution");
}

cudnnStatus_t finish(Descriptor &d) {
  for (const Rule &rule : rules)
    if (rule.descriptor == d.type && (rule.use & needed) != 0 && !d.has(rule.attribute))
      return refuse(CUDNN_STATUS_BAD_PARAM, "an attribute is not set");
  switch (static_cast<int>(d.type)) {
    case tensor:
      return finish_tensor(d);
    case convolution:
      return finish_convolution(d);
    case graph:
      return finish_graph(d);
    case engine:
      return finish_engine(d);
    case config:
      return finish_config(d);
    case heuristics:
      return finish_heuristics(d);
    case plan:
      return finish_plan(d);
    case device:
      return finish_device(d);
    case choice:
      return CUDNN_STATUS_SUCCESS;
    case pack:
      return d.value(CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS).count == d.value(CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS).count
                 ? CUDNN_STATUS_SUCCESS
                 : refuse(CUDNN_STATUS_BAD_PARAM, "not one pointer for each tensor");
    case knob:
      return refuse(CUDNN_STATUS_BAD_PARAM, "given by engines alone");
    default:
      return finish_operation(d);
  }
}

thread_local std::string last_refusal;

}  // namespace

cudnnStatus_t refuse(cudnnStatus_t status, const char *why) {
  last_refusal = why;
  return status;
}

}  // namespace emulator

using namespace emulator;

/* Descriptors need no device. */
#define CUDNN_CALL()             \
  Call call(__func__, anywhere); \
  if (call.error() != cudaSuccess) return refuse(CUDNN_STATUS_INTERNAL_ERROR, "not now")

#define DESCRIPTOR(handle)                                                                      \
  if ((handle) == nullptr) return refuse(CUDNN_STATUS_BAD_PARAM_NULL_POINTER, "no descriptor"); \
  auto d = held<Descriptor>(handle);                                                            \
  if (d == nullptr) return refuse(CUDNN_STATUS_BAD_PARAM, "not a descriptor")

void cudnnGetLastErrorString(char *message, size_t size) {
  snprintf(message, size, "%s", last_refusal.c_str());
}

cudnnStatus_t cudnnBackendCreateDescriptor(cudnnBackendDescriptorType_t type, cudnnBackendDescriptor_t *out) {
  CUDNN_CALL();
  if (out == nullptr) return refuse(CUDNN_STATUS_BAD_PARAM_NULL_POINTER, "nowhere to put it");
  if (std::none_of(std::begin(rules), std::end(rules), [=](const Rule &r) { return r.descriptor == type; })) {
    misuse("descriptors of type %d are not emulated", type);
    return refuse(CUDNN_STATUS_NOT_SUPPORTED, "no such descriptor");
  }
  auto d = std::make_shared<Descriptor>();
  d->type = type;
  *out = hold(d);
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnBackendDestroyDescriptor(cudnnBackendDescriptor_t handle) {
  CUDNN_CALL();
  DESCRIPTOR(handle);
  drop_label(handle);
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnBackendSetAttribute(cudnnBackendDescriptor_t handle, cudnnBackendAttributeName_t attribute,
                                       cudnnBackendAttributeType_t type, int64_t count, const void *elements) {
  CUDNN_CALL();
  DESCRIPTOR(handle);
  if (d->final) return refuse(CUDNN_STATUS_BAD_PARAM, "the descriptor is final");
  const Rule *rule = rule_of(d->type, attribute);
  if (rule == nullptr || (rule->use & given) != 0) return refuse(CUDNN_STATUS_BAD_PARAM, "no such attribute to set");
  if (!type_fits(*rule, type)) return refuse(CUDNN_STATUS_BAD_PARAM_ATTRIBUTE_TYPE, "attribute type");
  if (count <= 0 || count > rule->most || elements == nullptr)
    return refuse(CUDNN_STATUS_BAD_PARAM, "number of elements");
  if (rule->type == descriptor_type)
    return refer(*d, *rule, count, static_cast<const cudnnBackendDescriptor_t *>(elements));
  if (type == CUDNN_TYPE_DOUBLE) {
    d->put<float>(attribute, CUDNN_TYPE_FLOAT, {static_cast<float>(*static_cast<const double *>(elements))});
    return CUDNN_STATUS_SUCCESS;
  }
  if (type == CUDNN_TYPE_HANDLE && held<CudnnHandle>(*static_cast<const cudnnHandle_t *>(elements)) == nullptr)
    return refuse(CUDNN_STATUS_BAD_PARAM, "not a handle");
  const char *from = static_cast<const char *>(elements);
  d->values[attribute] = {type, count, {from, from + static_cast<size_t>(count) * element_size(type)}, {}};
  return CUDNN_STATUS_SUCCESS;
}

/* Descriptors that an attribute refers to are copied into those that the caller has made. `got` is how many there
 * are. */
cudnnStatus_t cudnnBackendGetAttribute(cudnnBackendDescriptor_t handle, cudnnBackendAttributeName_t attribute,
                                       cudnnBackendAttributeType_t type, int64_t count, int64_t *got, void *elements) {
  CUDNN_CALL();
  DESCRIPTOR(handle);
  if (!d->final) return refuse(CUDNN_STATUS_NOT_INITIALIZED, "the descriptor is not final");
  const Rule *rule = rule_of(d->type, attribute);
  if (rule == nullptr) return refuse(CUDNN_STATUS_BAD_PARAM, "no such attribute");
  if (rule->type != static_cast<int>(type)) return refuse(CUDNN_STATUS_BAD_PARAM_ATTRIBUTE_TYPE, "attribute type");
  int64_t there = d->has(attribute) ? d->value(attribute).count : 0;
  if (got != nullptr) *got = there;
  if (elements == nullptr || there == 0) return CUDNN_STATUS_SUCCESS;
  const Value &value = d->value(attribute);
  int64_t n = std::min(count, there);
  if (type != CUDNN_TYPE_BACKEND_DESCRIPTOR) {
    std::copy_n(value.bytes.data(), static_cast<size_t>(n) * element_size(type), static_cast<char *>(elements));
    return CUDNN_STATUS_SUCCESS;
  }
  for (int64_t i = 0; i < n; i++) {
    auto to = held<Descriptor>(static_cast<cudnnBackendDescriptor_t *>(elements)[i]);
    const Descriptor &from = *value.descriptors[static_cast<size_t>(i)];
    if (to == nullptr || to->type != from.type) return refuse(CUDNN_STATUS_BAD_PARAM, "a descriptor of another type");
    *to = from;
  }
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnBackendFinalize(cudnnBackendDescriptor_t handle) {
  CUDNN_CALL();
  DESCRIPTOR(handle);
  if (d->final) return refuse(CUDNN_STATUS_BAD_PARAM, "the descriptor is final");
  cudnnStatus_t status = finish(*d);
  d->final = status == CUDNN_STATUS_SUCCESS;
  return status;
}
