/* The engines that the emulated cuDNN has for convolutions: which graphs they take, their notes, knobs and workspaces.
 * They compute the same sums in different orders. */
#include "descriptors.h"

namespace emulator {

namespace {

struct Knob {
  int type;
  int64_t minimum, maximum;
};

struct Problem {
  Conv conv;
  int64_t out_bytes;  // of what is computed, in f32
};

struct Engine {
  int64_t index;
  Order order;
  bool tensor_core;
  std::vector<int> notes, behaviour;
  std::vector<Knob> knobs;
  bool (*takes)(const Problem &);
  int64_t (*workspace)(const Problem &, int64_t knob);  // with the first knob's value
  bool compiles;                                        // whether plans of it can be made
  int64_t code_bytes;                                   // of its kernel for a direction and a knob
};

bool anything(const Problem &) {
  return true;
}
bool backward(const Problem &p) {
  return p.conv.direction != Direction::forward;
}
bool dense_3x3(const Problem &p) {
  const Conv &c = p.conv;
  return c.w.dims[2] == 3 && c.w.dims[3] == 3 && c.strides[0] == 1 && c.strides[1] == 1 && c.dilations[0] == 1 &&
         c.dilations[1] == 1 && c.x.dims[1] == c.w.dims[1] && c.direction != Direction::backward_filter;
}

const std::vector<Engine> &engines() {
  static const std::vector<Engine> all = {
      {0,
       Order::plain,
       false,
       {},
       {},
       {},
       anything,
       [](const Problem &, int64_t) { return int64_t{0}; },
       true,
       (int64_t{20} << 20) + 1000},
      {1,
       Order::reversed,
       true,
       {CUDNN_NUMERICAL_NOTE_TENSOR_CORE, CUDNN_NUMERICAL_NOTE_DOWN_CONVERT_INPUTS},
       {CUDNN_BEHAVIOR_NOTE_SUPPORTS_CUDA_GRAPH_NATIVE_API},
       {{CUDNN_KNOB_TYPE_SPLIT_K_BUF, -1, 1}},
       anything,
       [](const Problem &p, int64_t buffers) { return (buffers + 2) * 1000 + p.conv.w.dims[0] * 8; },
       true,
       (int64_t{50} << 20) - 1000},
      {4,
       Order::random,
       false,
       {CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC},
       {},
       {{CUDNN_KNOB_TYPE_SPLIT_K_SLC, 0, 4}},
       backward,
       [](const Problem &p, int64_t split) { return split * p.out_bytes; },
       true,
       int64_t{40} << 20},
      {7,
       Order::reversed,
       false,
       {CUDNN_NUMERICAL_NOTE_WINOGRAD},
       {},
       {},
       dense_3x3,
       [](const Problem &p, int64_t) { return 4 * p.out_bytes + 20; },
       true,
       int64_t{90} << 20},
      {engine_count - 1,
       Order::plain,
       false,
       {},
       {CUDNN_BEHAVIOR_NOTE_RUNTIME_COMPILATION},
       {},
       anything,
       [](const Problem &, int64_t) { return int64_t{0}; },
       false,
       0},
  };
  return all;
}

const Engine *engine_at(int64_t index) {
  for (const Engine &engine : engines())
    if (engine.index == index) return &engine;
  return nullptr;
}

/* What the engines are asked to do; false: nothing that any of them does. */
bool problem_of(const Descriptor &graph, Problem *out) {
  const Descriptor &operation = *graph.value(CUDNN_ATTR_OPERATIONGRAPH_OPS).descriptors[0];
  bool emulated;
  if (!conv_of(operation, &out->conv, &emulated) || !emulated) return false;
  const Tensor &to = out->conv.direction == Direction::forward         ? out->conv.y
                     : out->conv.direction == Direction::backward_data ? out->conv.x
                                                                       : out->conv.w;
  out->out_bytes = 4;
  for (int64_t n : to.dims) out->out_bytes *= n;
  return true;
}

int64_t knob_value(const Descriptor &config, const Knob &knob) {
  if (config.has(CUDNN_ATTR_ENGINECFG_KNOB_CHOICES))
    for (const auto &choice : config.value(CUDNN_ATTR_ENGINECFG_KNOB_CHOICES).descriptors)
      if (choice->scalar<int>(CUDNN_ATTR_KNOB_CHOICE_KNOB_TYPE, -1) == knob.type)
        return choice->scalar<int64_t>(CUDNN_ATTR_KNOB_CHOICE_KNOB_VALUE, 0);
  return knob.minimum;
}

const Descriptor &engine_of(const Descriptor &config) {
  return config.descriptor(CUDNN_ATTR_ENGINECFG_ENGINE);
}

const Engine &what(const Descriptor &engine) {
  return *engine_at(engine.scalar<int64_t>(CUDNN_ATTR_ENGINE_GLOBAL_INDEX, 0));
}

std::shared_ptr<Descriptor> make(cudnnBackendDescriptorType_t type) {
  auto out = std::make_shared<Descriptor>();
  out->type = type;
  out->final = true;
  return out;
}

std::shared_ptr<Descriptor> knob_info(const Knob &knob) {
  auto out = make(CUDNN_BACKEND_KNOB_INFO_DESCRIPTOR);
  out->put<int>(CUDNN_ATTR_KNOB_INFO_TYPE, CUDNN_TYPE_KNOB_TYPE, {knob.type});
  out->put<int64_t>(CUDNN_ATTR_KNOB_INFO_MINIMUM_VALUE, CUDNN_TYPE_INT64, {knob.minimum});
  out->put<int64_t>(CUDNN_ATTR_KNOB_INFO_MAXIMUM_VALUE, CUDNN_TYPE_INT64, {knob.maximum});
  out->put<int64_t>(CUDNN_ATTR_KNOB_INFO_STRIDE, CUDNN_TYPE_INT64, {1});
  return out;
}

std::shared_ptr<Descriptor> config_with(const std::shared_ptr<const Descriptor> &engine, const Knob *knob,
                                        int64_t value) {
  auto out = make(CUDNN_BACKEND_ENGINECFG_DESCRIPTOR);
  out->refer(CUDNN_ATTR_ENGINECFG_ENGINE, {engine});
  if (knob != nullptr) {
    auto choice = make(CUDNN_BACKEND_KNOB_CHOICE_DESCRIPTOR);
    choice->put<int>(CUDNN_ATTR_KNOB_CHOICE_KNOB_TYPE, CUDNN_TYPE_KNOB_TYPE, {knob->type});
    choice->put<int64_t>(CUDNN_ATTR_KNOB_CHOICE_KNOB_VALUE, CUDNN_TYPE_INT64, {value});
    out->refer(CUDNN_ATTR_ENGINECFG_KNOB_CHOICES, {choice});
  }
  return finish_config(*out) == CUDNN_STATUS_SUCCESS ? out : nullptr;
}

/* Deviceless work has the device as a property descriptor, other work by the graph's handle. */
bool knows_device(const Descriptor &d, int property, const Descriptor &graph) {
  return d.has(property) || graph.has(CUDNN_ATTR_OPERATIONGRAPH_HANDLE);
}

}  // namespace

cudnnStatus_t finish_engine(Descriptor &d) {
  const Descriptor &graph = d.descriptor(CUDNN_ATTR_ENGINE_OPERATION_GRAPH);
  if (!knows_device(d, CUDNN_ATTR_ENGINE_DEVICEPROP, graph))
    return refuse(CUDNN_STATUS_BAD_PARAM, "neither handle nor device properties");
  int64_t index = d.scalar<int64_t>(CUDNN_ATTR_ENGINE_GLOBAL_INDEX, -1);
  if (index < 0 || index >= engine_count) return refuse(CUDNN_STATUS_BAD_PARAM, "no such engine");
  const Engine *engine = engine_at(index);
  Problem problem;
  if (engine == nullptr || !problem_of(graph, &problem) || !engine->takes(problem))
    return refuse(CUDNN_STATUS_NOT_SUPPORTED, "the engine does not take the graph");
  std::vector<std::shared_ptr<const Descriptor>> knobs;
  for (const Knob &knob : engine->knobs) knobs.push_back(knob_info(knob));
  d.refer(CUDNN_ATTR_ENGINE_KNOB_INFO, std::move(knobs));
  d.put(CUDNN_ATTR_ENGINE_NUMERICAL_NOTE, CUDNN_TYPE_NUMERICAL_NOTE, engine->notes);
  d.put(CUDNN_ATTR_ENGINE_BEHAVIOR_NOTE, CUDNN_TYPE_BEHAVIOR_NOTE, engine->behaviour);
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t finish_config(Descriptor &d) {
  const Engine &engine = what(engine_of(d));
  if (d.has(CUDNN_ATTR_ENGINECFG_KNOB_CHOICES))
    for (const auto &choice : d.value(CUDNN_ATTR_ENGINECFG_KNOB_CHOICES).descriptors) {
      int64_t value = choice->scalar<int64_t>(CUDNN_ATTR_KNOB_CHOICE_KNOB_VALUE, 0);
      bool fits = false;
      for (const Knob &knob : engine.knobs)
        fits = fits || (knob.type == choice->scalar<int>(CUDNN_ATTR_KNOB_CHOICE_KNOB_TYPE, -1) &&
                        value >= knob.minimum && value <= knob.maximum);
      if (!fits) return refuse(CUDNN_STATUS_BAD_PARAM, "the engine has no such knob or value");
    }
  Problem problem;
  if (!problem_of(engine_of(d).descriptor(CUDNN_ATTR_ENGINE_OPERATION_GRAPH), &problem))
    return refuse(CUDNN_STATUS_NOT_SUPPORTED, "no convolution");
  int64_t first = engine.knobs.empty() ? 0 : knob_value(d, engine.knobs[0]);
  d.put<int64_t>(CUDNN_ATTR_ENGINECFG_WORKSPACE_SIZE, CUDNN_TYPE_INT64, {engine.workspace(problem, first)});
  return CUDNN_STATUS_SUCCESS;
}

/* The fall-back mode has the plain engine, the others the rest first: each with its knobs lowest and highest. */
cudnnStatus_t finish_heuristics(Descriptor &d) {
  const auto &graph = d.value(CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH).descriptors[0];
  if (!knows_device(d, CUDNN_ATTR_ENGINEHEUR_DEVICEPROP, *graph))
    return refuse(CUDNN_STATUS_BAD_PARAM, "neither handle nor device properties");
  bool fallback = d.scalar<int>(CUDNN_ATTR_ENGINEHEUR_MODE, 0) == CUDNN_HEUR_MODE_FALLBACK;
  std::vector<std::shared_ptr<const Descriptor>> results;
  for (size_t i = engines().size(); i-- > 0;) {
    const Engine &engine = engines()[i];
    if (fallback && engine.index != 0) continue;
    auto made = make(CUDNN_BACKEND_ENGINE_DESCRIPTOR);
    made->refer(CUDNN_ATTR_ENGINE_OPERATION_GRAPH, {graph});
    made->put<int64_t>(CUDNN_ATTR_ENGINE_GLOBAL_INDEX, CUDNN_TYPE_INT64, {engine.index});
    if (d.has(CUDNN_ATTR_ENGINEHEUR_DEVICEPROP))
      made->refer(CUDNN_ATTR_ENGINE_DEVICEPROP, d.value(CUDNN_ATTR_ENGINEHEUR_DEVICEPROP).descriptors);
    if (finish_engine(*made) != CUDNN_STATUS_SUCCESS) continue;
    if (engine.knobs.empty()) {
      results.push_back(config_with(made, nullptr, 0));
      continue;
    }
    const Knob &knob = engine.knobs[0];
    for (int64_t value : {knob.maximum, knob.minimum}) results.push_back(config_with(made, &knob, value));
  }
  d.refer(CUDNN_ATTR_ENGINEHEUR_RESULTS, std::move(results));
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t finish_plan(Descriptor &d) {
  if (!d.has(CUDNN_ATTR_EXECUTION_PLAN_HANDLE) && !d.has(CUDNN_ATTR_EXECUTION_PLAN_DEVICEPROP))
    return refuse(CUDNN_STATUS_BAD_PARAM, "neither handle nor device properties");
  const Descriptor &config = d.descriptor(CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG);
  if (!what(engine_of(config)).compiles) return refuse(CUDNN_STATUS_NOT_SUPPORTED, "no kernel could be made");
  d.put<int64_t>(CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE, CUDNN_TYPE_INT64,
                 config.array<int64_t>(CUDNN_ATTR_ENGINECFG_WORKSPACE_SIZE));
  return CUDNN_STATUS_SUCCESS;
}

Method method_of(const Descriptor &plan) {
  const Descriptor &config = plan.descriptor(CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG);
  const Engine &engine = what(engine_of(config));
  int64_t knob = engine.knobs.empty() ? 0 : knob_value(config, engine.knobs[0]);
  return {engine.order,
          engine.tensor_core,
          plan.scalar<int64_t>(CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE, 0),
          engine.index != settings().engine_that_fails,
          "convolution " + std::to_string(engine.index) + " " + std::to_string(knob),
          engine.code_bytes,
          engine.order == Order::reversed};
}

const Descriptor &operation_of(const Descriptor &plan) {
  const Descriptor &engine = engine_of(plan.descriptor(CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG));
  return engine.descriptor(CUDNN_ATTR_ENGINE_OPERATION_GRAPH).descriptor(CUDNN_ATTR_OPERATIONGRAPH_OPS);
}

}  // namespace emulator
