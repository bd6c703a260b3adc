/* What the extension (plain_calls.cpp) knows of a plan that is followed. */
#ifndef PLANC_TORCH_PLAIN_PLAN_H
#define PLANC_TORCH_PLAIN_PLAN_H

#include <Python.h>
#include <torch/csrc/Dtype.h>
#include <torch/csrc/autograd/python_variable.h>

#include <cstdint>
#include <utility>
#include <vector>

#include "placing.h"

namespace {

/* A reference of our own. */
class Ref {
 public:
  explicit Ref(PyObject *object = nullptr) : object_(object) {}
  Ref(Ref &&other) noexcept : object_(other.object_) { other.object_ = nullptr; }
  Ref(const Ref &) = delete;
  Ref &operator=(const Ref &) = delete;
  Ref &operator=(Ref &&other) noexcept {
    std::swap(object_, other.object_);
    return *this;
  }
  ~Ref() { Py_XDECREF(object_); }
  static Ref to(PyObject *object) {
    Py_XINCREF(object);
    return Ref(object);
  }
  PyObject *get() const { return object_; }
  PyObject *give() {
    PyObject *object = object_;
    object_ = nullptr;
    return object;
  }
  explicit operator bool() const { return object_ != nullptr; }

 private:
  PyObject *object_;
};

enum class Way { done, failed, other }; /* other: left to Python, and nothing done */

struct Names {
  PyObject *iterations, *running, *aside, *inside, *plain, *reason, *at, *alike, *memory, *raised, *check, *recall,
      *made, *refuse_failed, *resize, *cdata, *is_shared;
} names;

Ref attribute(PyObject *object, PyObject *name) {
  return Ref(PyObject_GetAttr(object, name));
}

/* --- Tensors ------------------------------------------------------------------------------------------------------ */

struct Found {
  PyObject *object; /* of the call's arguments or result, which live on */
  const at::Tensor *tensor;
};

c10::StorageImpl *storage_of(const at::Tensor &tensor) {
  return tensor.storage().unsafeGetStorageImpl();
}

/* calls.tensors_on, of PyTorch's own kinds of tensors. False: there are others. */
bool collect(c10::DeviceType device, PyObject *value, std::vector<Found> *found) {
  PyTypeObject *type = Py_TYPE(value);
  if (value == Py_None || type == &PyLong_Type || type == &PyFloat_Type || type == &PyBool_Type) return true;
  if (THPVariable_CheckTypeExact(type)) {
    const at::Tensor &tensor = THPVariable_Unpack(value);
    if (tensor.device().type() != device || tensor.numel() == 0) return true;
    if (tensor.layout() != at::kStrided || !tensor.has_storage()) return false;
    found->push_back({value, &tensor});
    return true;
  }
  if (PyTuple_Check(value) || PyList_Check(value)) {
    for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(value); i++)
      if (!collect(device, PySequence_Fast_GET_ITEM(value, i), found)) return false;
    return true;
  }
  if (PyDict_Check(value)) {
    PyObject *key, *part;
    for (Py_ssize_t i = 0; PyDict_Next(value, &i, &key, &part);)
      if (!collect(device, part, found)) return false;
    return true;
  }
  return !PyType_IsSubtype(type, reinterpret_cast<PyTypeObject *>(THPVariableClass));
}

/* --- A plan ------------------------------------------------------------------------------------------------------- */

constexpr int32_t NONE = -1;

struct Alike { /* of PlannedCall.alike: the function, and of each tensor the shape and type */
  Ref object;
  PyObject *function = nullptr;
  std::vector<at::ScalarType> types;
  std::vector<std::vector<int64_t>> sizes;
};

struct Call {
  Ref planned;
  std::vector<int32_t> given, gives; /* buffers */
  bool repeats;
  Alike alike;
};

using Next = void *(*)(void *follow, int32_t *call);
using Done = void *(*)(void *follow);
using RoomsOf = const Rooms *(*)(const void *follow);

struct Parts { /* of a Plan, each from Python by this name */
  PyObject *follower, *storages, *buffers, *dropped, *ghosts, *kept, *lasting, *pinned, *storage_of;
};

struct Plan {
  PyObject_HEAD Parts parts;
  c10::DeviceType device;
  std::vector<Call> *calls;
  std::vector<int64_t> *bytes; /* by buffer */
  std::vector<Ref> *numbers;   /* buffers as Python has them */
  void *follow;
  Next next;
  Done done;
  RoomsOf rooms;
  Placing *placing; /* NULL: memory is where PyTorch has it */
  Py_ssize_t made;  /* calls */
};

constexpr int N_PARTS = sizeof(Parts) / sizeof(PyObject *);

PyObject **parts_of(PyObject *plan) {
  return reinterpret_cast<PyObject **>(&reinterpret_cast<Plan *>(plan)->parts);
}

PyObject *key_of(const Plan *plan, int32_t buffer) {
  return (*plan->numbers)[static_cast<size_t>(buffer)].get();
}

/* Borrowed; NULL: no storage is known to be in the buffer. */
PyObject *storage_in(const Plan *plan, int32_t buffer) {
  bool is_named = static_cast<size_t>(buffer) < plan->numbers->size();
  return is_named ? PyDict_GetItem(plan->parts.storages, key_of(plan, buffer)) : nullptr;
}

/* The buffer that a storage is in, NONE; as Memory.buffer_in. */
int32_t buffer_in(const Plan *plan, const c10::StorageImpl *storage) {
  Ref key(PyLong_FromVoidPtr(const_cast<c10::StorageImpl *>(storage)));
  PyObject *buffer = key ? PyDict_GetItem(plan->parts.buffers, key.get()) : nullptr;
  return buffer ? static_cast<int32_t>(PyLong_AsLong(buffer)) : NONE;
}

bool read_alike(Alike *alike, PyObject *object) {
  alike->object = Ref::to(object);
  alike->function = nullptr;
  alike->types.clear();
  alike->sizes.clear();
  if (!PyTuple_Check(object) || PyTuple_GET_SIZE(object) != 2 || !PyList_Check(PyTuple_GET_ITEM(object, 1)))
    return false;
  PyObject *tensors = PyTuple_GET_ITEM(object, 1);
  for (Py_ssize_t i = 0; i < PyList_GET_SIZE(tensors); i++) {
    PyObject *shape = PyTuple_GET_ITEM(PyList_GET_ITEM(tensors, i), 0);
    alike->types.push_back(reinterpret_cast<THPDtype *>(PyTuple_GET_ITEM(PyList_GET_ITEM(tensors, i), 1))->scalar_type);
    alike->sizes.emplace_back();
    for (Py_ssize_t k = 0; k < PyTuple_GET_SIZE(shape); k++)
      alike->sizes.back().push_back(PyLong_AsLongLong(PyTuple_GET_ITEM(shape, k)));
  }
  alike->function = PyTuple_GET_ITEM(object, 0);
  return true;
}

/* Whether tensors are as those of a call that was found to be the recorded one, and the plan's tensors at that. */
bool is_as_recorded(const Plan *plan, const Call &call, const std::vector<Found> &given) {
  size_t n = given.size();
  if (n != call.alike.types.size() || n != call.given.size()) return false;
  for (size_t i = 0; i < n; i++) {
    const at::Tensor &tensor = *given[i].tensor;
    if (tensor.scalar_type() != call.alike.types[i] || tensor.sizes() != at::IntArrayRef(call.alike.sizes[i]))
      return false;
    if (buffer_in(plan, storage_of(tensor)) != call.given[i]) return false;
  }
  return true;
}

}  // namespace

#endif
