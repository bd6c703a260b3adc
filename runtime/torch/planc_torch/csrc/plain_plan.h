/* What the extension (plain_calls.cpp) knows of a plan that is followed, and what libplanrt asks it for. */
#ifndef PLANC_TORCH_PLAIN_PLAN_H
#define PLANC_TORCH_PLAIN_PLAN_H

#include <Python.h>
#include <torch/csrc/Dtype.h>
#include <torch/csrc/autograd/python_variable.h>

#include <cstdint>
#include <utility>
#include <vector>

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
      *made, *refuse_failed, *resize, *cdata, *data_ptr;
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
  Py_ssize_t made; /* calls */
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

/* Follower.check, where there is something to check. */
bool is_well(const Plan *plan, void *status) {
  Ref raised = attribute(plan->parts.follower, names.raised);
  if (!status && raised.get() == Py_None) return true;
  Ref address = status ? Ref(PyLong_FromVoidPtr(status)) : Ref::to(Py_None);
  return raised && address && Ref(PyObject_CallMethodOneArg(plan->parts.follower, names.check, address.get()));
}

/* Iteration.unlike, of results that are as recorded. */
Way bind_results(Plan *plan, const Call &call, PyObject *result) {
  std::vector<Found> results;
  if (!collect(plan->device, result, &results) || results.size() != call.gives.size()) return Way::other;
  for (size_t i = 0; i < results.size(); i++) {
    int32_t wanted = call.gives[i];
    c10::StorageImpl *storage = storage_of(*results[i].tensor);
    int32_t found = buffer_in(plan, storage);
    if (found == wanted) continue;
    if (found != NONE || wanted == NONE) return Way::other;
    PyObject *key = key_of(plan, wanted);
    if (PyDict_Contains(plan->parts.storages, key) || PySet_Contains(plan->parts.lasting, key)) return Way::other;
    if (static_cast<int64_t>(storage->nbytes()) != (*plan->bytes)[static_cast<size_t>(wanted)]) return Way::other;
    Ref identity(PyLong_FromVoidPtr(storage)), bound(PyObject_CallOneArg(plan->parts.storage_of, results[i].object));
    if (!identity || !bound || PyDict_SetItem(plan->parts.storages, key, bound.get()) ||
        PyDict_SetItem(plan->parts.buffers, identity.get(), key))
      return Way::failed;
  }
  return Way::done;
}

/* What libplanrt answers while other threads of Python's may run, for it may copy. */
template <typename Ask>
void *without_lock(Ask ask) {
  PyThreadState *state = PyEval_SaveThread();
  void *status = ask();
  PyEval_RestoreThread(state);
  return status;
}

/* Iteration.run from where the call is known to be the recorded one. */
PyObject *run(Plan *plan, PyObject *iteration, Py_ssize_t at, PyObject *function, PyObject *args, PyObject *kwargs) {
  Call &call = (*plan->calls)[static_cast<size_t>(at)];
  int32_t next = NONE;
  if (!is_well(plan, without_lock([&] { return plan->next(plan->follow, &next); }))) return nullptr;
  if (next != at) { /* after a failure, of which this tells */
    bool is_told = !Ref(PyObject_CallMethodNoArgs(iteration, names.refuse_failed));
    return is_told ? nullptr : PyErr_Format(PyExc_RuntimeError, "call %d is next and not %zd", next, at);
  }
  if (call.repeats) {
    Ref memory = attribute(iteration, names.memory), now(PyLong_FromSsize_t(at)), none(PyDict_New());
    if (!memory || !now || !none ||
        !Ref(PyObject_CallMethodObjArgs(memory.get(), names.recall, now.get(), function, args,
                                        kwargs ? kwargs : none.get(), nullptr)))
      return nullptr;
  }
  Ref result(PyObject_Call(function, args, kwargs));
  if (!result) return nullptr;
  Ref reason = attribute(iteration, names.reason);
  if (!reason) return nullptr;
  if (reason.get() != Py_None) return result.give(); /* another thread has left the step meanwhile */
  Way way = bind_results(plan, call, result.get());
  if (way == Way::failed) return nullptr;
  if (way == Way::other)
    return Ref(PyObject_CallMethodObjArgs(iteration, names.made, result.get(), call.planned.get(), nullptr))
               ? result.give()
               : nullptr;
  Ref then(PyLong_FromSsize_t(at + 1));
  if (!then || PyObject_SetAttr(iteration, names.at, then.get())) return nullptr;
  plan->made++;
  return is_well(plan, without_lock([&] { return plan->done(plan->follow); })) ? result.give() : nullptr;
}

/* --- What libplanrt asks for: Memory's methods of these names ----------------------------------------------------- */

/* Runs `act` as a callback of libplanrt's; an exception waits in the follower until C has returned. */
template <typename Result, typename Act>
Result guarded(void *user, Result failure, Act act) {
  PyGILState_STATE state = PyGILState_Ensure();
  Plan *plan = static_cast<Plan *>(user);
  Result result = act(plan);
  if (PyErr_Occurred()) {
    PyObject *type, *value, *trace;
    PyErr_Fetch(&type, &value, &trace);
    PyErr_NormalizeException(&type, &value, &trace);
    if (trace) PyException_SetTraceback(value, trace);
    Ref raised = attribute(plan->parts.follower, names.raised);
    if (raised.get() == Py_None) PyObject_SetAttr(plan->parts.follower, names.raised, value);
    Py_XDECREF(type);
    Py_XDECREF(value);
    Py_XDECREF(trace);
    result = failure;
  }
  PyGILState_Release(state);
  return result;
}

c10::StorageImpl *impl_of(PyObject *storage) {
  Ref cdata = attribute(storage, names.cdata);
  return cdata ? static_cast<c10::StorageImpl *>(PyLong_AsVoidPtr(cdata.get())) : nullptr;
}

void *address(void *user, int32_t buffer) {
  return guarded(user, static_cast<void *>(nullptr), [buffer](Plan *plan) -> void * {
    PyObject *storage = storage_in(plan, buffer);
    if (!storage || PySet_Contains(plan->parts.pinned, key_of(plan, buffer))) return nullptr;
    const c10::StorageImpl *impl = impl_of(storage);
    if (!impl || static_cast<int64_t>(impl->nbytes()) != (*plan->bytes)[static_cast<size_t>(buffer)]) return nullptr;
    Ref data(PyObject_CallMethodNoArgs(storage, names.data_ptr));
    return data ? PyLong_AsVoidPtr(data.get()) : nullptr;
  });
}

bool resize(PyObject *storage, int64_t bytes) {
  Ref size(PyLong_FromLongLong(bytes));
  return size && Ref(PyObject_CallMethodOneArg(storage, names.resize, size.get()));
}

int no_storage(int32_t buffer) {
  PyErr_Format(PyExc_KeyError, "%d", static_cast<int>(buffer));
  return 1;
}

int allocate(void *user, int32_t buffer, int64_t) {
  return guarded(user, 1, [buffer](Plan *plan) -> int {
    Ref storage = Ref::to(storage_in(plan, buffer));
    return !storage ? no_storage(buffer) : !resize(storage.get(), (*plan->bytes)[static_cast<size_t>(buffer)]);
  });
}

/* --- Ghosts: as a StorageWeakRef, made in a fraction of the time ---------------------------------------------------
 */

struct Ghost {
  PyObject_HEAD c10::StorageImpl *storage; /* a weak reference */
};

PyTypeObject *ghost_type;

PyObject *new_ghost(c10::StorageImpl *storage) {
  PyObject *ghost = ghost_type->tp_alloc(ghost_type, 0);
  if (!ghost) return nullptr;
  c10::raw::weak_intrusive_ptr::incref(storage);
  reinterpret_cast<Ghost *>(ghost)->storage = storage;
  return ghost;
}

PyObject *is_expired(PyObject *self, PyObject *) {
  return PyBool_FromLong(c10::raw::weak_intrusive_ptr::use_count(reinterpret_cast<Ghost *>(self)->storage) == 0);
}

void free_ghost(PyObject *self) {
  PyTypeObject *type = Py_TYPE(self);
  c10::raw::weak_intrusive_ptr::decref(reinterpret_cast<Ghost *>(self)->storage);
  type->tp_free(self);
  Py_DECREF(type);
}

/* Memory.release of what the plan has no use for any more. */
bool drop(Plan *plan, PyObject *key, PyObject *storage) {
  Ref identity = attribute(storage, names.cdata);
  auto *impl = identity ? static_cast<c10::StorageImpl *>(PyLong_AsVoidPtr(identity.get())) : nullptr;
  if (!impl) return false;
  if (!PySet_Contains(plan->parts.kept, key)) {
    if (!resize(storage, 0)) return false;
    Ref ghost(new_ghost(impl));
    if (!ghost || PyDict_SetItem(plan->parts.ghosts, key, ghost.get()) ||
        PyDict_SetItem(plan->parts.dropped, identity.get(), key))
      return false;
  }
  return !PyDict_DelItem(plan->parts.storages, key) && !PyDict_DelItem(plan->parts.buffers, identity.get()) &&
         PySet_Discard(plan->parts.pinned, key) >= 0;
}

constexpr int64_t NUMBER = 16; /* memory.NUMBER */

int release(void *user, int32_t buffer, bool last) {
  return guarded(user, 1, [buffer, last](Plan *plan) -> int {
    Ref storage = Ref::to(storage_in(plan, buffer));
    if (!storage) return last ? 0 : no_storage(buffer);
    if (last && (*plan->bytes)[static_cast<size_t>(buffer)] <= NUMBER) return 0;
    return last ? !drop(plan, key_of(plan, buffer), storage.get()) : !resize(storage.get(), 0);
  });
}

}  // namespace

#endif
