/* The plain case of what planc_torch's watching.py, iteration.py and memory.py do for each call of a followed step, in
 * less time. What a call is held against, and all that is known of storages, is Python's: the same dictionaries are
 * read and written here. Whatever is not the plain case is left to Python before anything is done about it, so that
 * what differs, and what is told of it, is said in one place.
 *
 * A module of one version of Python and of PyTorch, without global state but for interned names. */
#include <Python.h>
#include <torch/csrc/Dtype.h>
#include <torch/csrc/autograd/python_variable.h>

#include <cstdint>
#include <unordered_map>
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
      *made, *name, *resize, *cdata, *data_ptr;
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
  PyObject *follower, *storages, *buffers, *dropped, *ghosts, *kept, *lasting, *pinned, *storage_of, *weak;
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

/* Iteration.run from where the call is known to be the recorded one. */
PyObject *run(Plan *plan, PyObject *iteration, Py_ssize_t at, PyObject *function, PyObject *args, PyObject *kwargs) {
  Call &call = (*plan->calls)[static_cast<size_t>(at)];
  int32_t ignored;
  void *status;
  Py_BEGIN_ALLOW_THREADS status = plan->next(plan->follow, &ignored);
  Py_END_ALLOW_THREADS if (!is_well(plan, status)) return nullptr;
  if (call.repeats) {
    Ref memory = attribute(iteration, names.memory), now(PyLong_FromSsize_t(at)), none(PyDict_New());
    if (!memory || !now || !none ||
        !Ref(PyObject_CallMethodObjArgs(memory.get(), names.recall, now.get(), function, args,
                                        kwargs ? kwargs : none.get(), nullptr)))
      return nullptr;
  }
  Ref result(PyObject_Call(function, args, kwargs));
  if (!result) return nullptr;
  Way way = bind_results(plan, call, result.get());
  if (way == Way::failed) return nullptr;
  if (way == Way::other)
    return Ref(PyObject_CallMethodObjArgs(iteration, names.made, result.get(), call.planned.get(), nullptr))
               ? result.give()
               : nullptr;
  Ref then(PyLong_FromSsize_t(at + 1));
  if (!then || PyObject_SetAttr(iteration, names.at, then.get())) return nullptr;
  Py_BEGIN_ALLOW_THREADS status = plan->done(plan->follow);
  Py_END_ALLOW_THREADS return is_well(plan, status) ? result.give() : nullptr;
}

/* --- What libplanrt asks for: Memory's methods of these names -------------------------------------------------------
 */

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

int allocate(void *user, int32_t buffer) {
  return guarded(user, 1, [buffer](Plan *plan) -> int {
    Ref storage = Ref::to(storage_in(plan, buffer));
    return !storage ? no_storage(buffer) : !resize(storage.get(), (*plan->bytes)[static_cast<size_t>(buffer)]);
  });
}

/* Memory.release of what the plan has no use for any more. */
bool drop(Plan *plan, PyObject *key, PyObject *storage) {
  Ref identity = attribute(storage, names.cdata);
  if (!identity) return false;
  if (!PySet_Contains(plan->parts.kept, key)) {
    if (!resize(storage, 0)) return false;
    Ref ghost(PyObject_CallOneArg(plan->parts.weak, storage));
    if (!ghost || PyDict_SetItem(plan->parts.ghosts, key, ghost.get()) ||
        PyDict_SetItem(plan->parts.dropped, identity.get(), key))
      return false;
  }
  return !PyDict_DelItem(plan->parts.storages, key) && !PyDict_DelItem(plan->parts.buffers, identity.get()) &&
         PySet_Discard(plan->parts.pinned, key) >= 0;
}

int release(void *user, int32_t buffer, bool last) {
  return guarded(user, 1, [buffer, last](Plan *plan) -> int {
    Ref storage = Ref::to(storage_in(plan, buffer));
    if (!storage) return last ? 0 : no_storage(buffer);
    return last ? !drop(plan, key_of(plan, buffer), storage.get()) : !resize(storage.get(), 0);
  });
}

/* --- Plan in Python -------------------------------------------------------------------------------------------------
 */

int traverse_plan(PyObject *self, visitproc visit, void *arg) {
  Py_VISIT(Py_TYPE(self));
  for (int i = 0; i < N_PARTS; i++) Py_VISIT(parts_of(self)[i]);
  return 0;
}

int clear_plan(PyObject *self) {
  for (int i = 0; i < N_PARTS; i++) Py_CLEAR(parts_of(self)[i]);
  return 0;
}

bool read_buffers(PyObject *list, std::vector<int32_t> *buffers) {
  for (Py_ssize_t i = 0; i < PyList_Size(list); i++)
    buffers->push_back(static_cast<int32_t>(PyLong_AsLong(PyList_GetItem(list, i))));
  return !PyErr_Occurred();
}

/* `calls`: of each its PlannedCall, the buffers that it is given and gives, and whether it is repeated. `bytes` of all
 * buffers. Addresses are those of libplanrt's functions. */
PyObject *begin_plan(PyObject *self, PyObject *args, PyObject *keywords) {
  static const char *const known[] = {"device", "calls", "bytes", "follow", "next", "done", "follower", "storages", "buffers",
                                      "dropped", "ghosts", "kept", "lasting", "pinned", "storage_of", "weak", nullptr};
  Plan *plan = reinterpret_cast<Plan *>(self);
  const char *device;
  PyObject *calls, *bytes;
  unsigned long long follow, next, done;
  Parts parts;
  if (!PyArg_ParseTupleAndKeywords(args, keywords, "sO!O!KKKOO!O!O!O!O!O!O!OO", const_cast<char **>(known), &device, &PyList_Type,
                                   &calls, &PyList_Type, &bytes, &follow, &next, &done, &parts.follower, &PyDict_Type,
                                   &parts.storages, &PyDict_Type, &parts.buffers, &PyDict_Type, &parts.dropped, &PyDict_Type,
                                   &parts.ghosts, &PySet_Type, &parts.kept, &PySet_Type, &parts.lasting, &PySet_Type,
                                   &parts.pinned, &parts.storage_of, &parts.weak))
    return nullptr;
  clear_plan(self);
  plan->parts = parts;
  for (int i = 0; i < N_PARTS; i++) Py_INCREF(parts_of(self)[i]);
  plan->calls = new std::vector<Call>(static_cast<size_t>(PyList_GET_SIZE(calls)));
  plan->bytes = new std::vector<int64_t>;
  plan->numbers = new std::vector<Ref>;
  plan->device = c10::Device(device).type();
  plan->follow = reinterpret_cast<void *>(follow);
  plan->next = reinterpret_cast<Next>(next);
  plan->done = reinterpret_cast<Done>(done);
  for (Py_ssize_t i = 0; i < PyList_GET_SIZE(calls); i++) {
    Call &call = (*plan->calls)[static_cast<size_t>(i)];
    PyObject *planned, *given, *gives;
    int repeats;
    if (!PyArg_ParseTuple(PyList_GET_ITEM(calls, i), "OO!O!p", &planned, &PyList_Type, &given, &PyList_Type, &gives, &repeats) ||
        !read_buffers(given, &call.given) || !read_buffers(gives, &call.gives))
      return nullptr;
    call.planned = Ref::to(planned);
    call.repeats = repeats;
  }
  for (Py_ssize_t i = 0; i < PyList_GET_SIZE(bytes); i++) {
    plan->bytes->push_back(PyLong_AsLongLong(PyList_GET_ITEM(bytes, i)));
    plan->numbers->push_back(Ref(PyLong_FromSsize_t(i)));
  }
  return PyErr_Occurred() ? nullptr : Py_NewRef(Py_None);
}

void free_plan(PyObject *self) {
  PyTypeObject *type = Py_TYPE(self);
  Plan *plan = reinterpret_cast<Plan *>(self);
  PyObject_GC_UnTrack(self);
  clear_plan(self);
  delete plan->calls;
  delete plan->bytes;
  delete plan->numbers;
  type->tp_free(self);
  Py_DECREF(type);
}

/* --- What is seen of calls: watching.Calls and watching.Functions
 * ----------------------------------------------------- */

struct Watch {
  PyObject_HEAD PyObject *watched, *only_views, *function_names, *other_call, *other_function;
  std::unordered_map<PyObject *, bool> *views; /* by function, each of which is kept */
};

Watch *watch_of(PyObject *self) {
  return reinterpret_cast<Watch *>(self);
}

/* calls.only_views, for functions that are asked for time and again: 1, 0, or -1 where that failed. */
int is_view(Watch *watch, PyObject *function) {
  auto known = watch->views->find(function);
  if (known != watch->views->end()) return known->second;
  Ref answer(PyObject_CallOneArg(watch->only_views, function));
  int is_one = answer ? PyObject_IsTrue(answer.get()) : -1;
  if (is_one >= 0) watch->views->emplace(Py_NewRef(function), is_one);
  return is_one;
}

/* A call while one step runs, and it alone. */
Way follow(Watch *watch, PyObject *iteration, PyObject *const *all, PyObject *kwargs, PyObject **result) {
  PyObject *function = all[0], *args = all[2];
  Ref plain = attribute(iteration, names.plain), reason = attribute(iteration, names.reason),
      now = attribute(iteration, names.at);
  if (!plain || !reason || !now) return Way::failed;
  if (plain.get() == Py_None || reason.get() != Py_None) return Way::other;
  Plan *plan = reinterpret_cast<Plan *>(plain.get());
  Py_ssize_t at = PyLong_AsSsize_t(now.get());
  if (at < 0 || at >= static_cast<Py_ssize_t>(plan->calls->size())) return PyErr_Occurred() ? Way::failed : Way::other;
  Call &call = (*plan->calls)[static_cast<size_t>(at)];
  Ref alike = attribute(call.planned.get(), names.alike);
  if (!alike) return Way::failed;
  if (alike.get() != call.alike.object.get()) read_alike(&call.alike, alike.get());
  bool is_next = function == call.alike.function;
  if (!is_next) {
    int view = is_view(watch, function);
    if (view < 1) return view < 0 ? Way::failed : Way::other;
  }
  std::vector<Found> given;
  if (!collect(plan->device, args, &given) || (kwargs && !collect(plan->device, kwargs, &given))) return Way::other;
  if (!is_next) {
    for (const Found &one : given)
      if (storage_of(*one.tensor)->nbytes() == 0) return Way::other;
    *result = PyObject_Call(function, args, kwargs);
  } else {
    if (!is_as_recorded(plan, call, given)) return Way::other;
    *result = run(plan, iteration, at, function, args, kwargs);
  }
  return *result ? Way::done : Way::failed;
}

/* The step that runs, if no other is followed. */
Ref alone(Watch *watch, PyObject *iterations) {
  Ref running = attribute(watch->watched, names.running);
  bool is_one = running && PyList_Check(running.get()) && PyList_GET_SIZE(running.get()) == 1 &&
                PyList_GET_SIZE(iterations) == 1 && PyList_GET_ITEM(running.get(), 0) == PyList_GET_ITEM(iterations, 0);
  return is_one ? Ref::to(PyList_GET_ITEM(iterations, 0)) : Ref();
}

/* Of a mode, as a method of which both are called: mode, function, types, args, kwargs. */
PyObject *see_call(PyObject *self, PyObject *const *given, Py_ssize_t n_given) {
  Watch *watch = watch_of(self);
  PyObject *const *all = given + 1;
  Py_ssize_t n = n_given - 1;
  if (n < 3 || !PyTuple_Check(all[2]))
    return PyObject_Vectorcall(watch->other_call, all, static_cast<size_t>(n), nullptr);
  PyObject *kwargs = n > 3 && PyDict_Check(all[3]) && PyDict_Size(all[3]) > 0 ? all[3] : nullptr;
  Ref iterations = attribute(watch->watched, names.iterations), aside = attribute(watch->watched, names.aside);
  if (!iterations || !aside) return nullptr;
  if (PyList_Size(iterations.get()) == 0 || aside.get() == Py_True) return PyObject_Call(all[0], all[2], kwargs);
  Ref iteration = alone(watch, iterations.get());
  PyObject *result = nullptr;
  Way way = Way::other;
  if (iteration) {
    Ref was = attribute(watch->watched, names.inside);
    if (!was || PyObject_SetAttr(watch->watched, names.inside, Py_True)) return nullptr;
    try {
      way = follow(watch, iteration.get(), all, kwargs, &result);
    } catch (const std::exception &error) {
      PyErr_SetString(PyExc_RuntimeError, error.what());
      way = Way::failed;
    }
    PyObject *type, *value, *trace;
    PyErr_Fetch(&type, &value, &trace);
    PyObject_SetAttr(watch->watched, names.inside, was.get());
    PyErr_Restore(type, value, trace);
  } else if (PyErr_Occurred()) {
    return nullptr;
  }
  return way == Way::other ? PyObject_Vectorcall(watch->other_call, all, static_cast<size_t>(n), nullptr) : result;
}

PyObject *see_function(PyObject *self, PyObject *const *given, Py_ssize_t n_given) {
  Watch *watch = watch_of(self);
  PyObject *const *all = given + 1;
  Py_ssize_t n = n_given - 1;
  Ref name(n < 3 || !PyTuple_Check(all[2]) ? nullptr : PyObject_GetAttr(all[0], names.name));
  PyErr_Clear();
  if (!name || PySet_Contains(watch->function_names, name.get())) {
    PyErr_Clear();
    return PyObject_Vectorcall(watch->other_function, all, static_cast<size_t>(n), nullptr);
  }
  return PyObject_Call(all[0], all[2], n > 3 && PyDict_Check(all[3]) ? all[3] : nullptr);
}

PyObject *new_watch(PyTypeObject *type, PyObject *args, PyObject *) {
  PyObject *parts[5];
  if (!PyArg_ParseTuple(args, "OOOOO", &parts[0], &parts[1], &parts[2], &parts[3], &parts[4])) return nullptr;
  Watch *watch = watch_of(type->tp_alloc(type, 0));
  if (!watch) return nullptr;
  for (int i = 0; i < 5; i++) (&watch->watched)[i] = Py_NewRef(parts[i]);
  watch->views = new std::unordered_map<PyObject *, bool>;
  return reinterpret_cast<PyObject *>(watch);
}

/* --- Storages
 * --------------------------------------------------------------------------------------------------------- */

/* Moves the memory of a tensor that is used no more into a storage that has none; False where it cannot be had: it is
 * of another size, is not the tensor's alone, or is not of the same allocator. */
PyObject *take_memory(PyObject *, PyObject *const *all, Py_ssize_t n) {
  c10::StorageImpl *to = n == 3 ? impl_of(all[0]) : nullptr;
  if (!to || !THPVariable_Check(all[1]))
    return PyErr_Occurred() ? nullptr : PyErr_Format(PyExc_TypeError, "storage, tensor, bytes");
  const at::Tensor &tensor = THPVariable_Unpack(all[1]);
  c10::StorageImpl *from = storage_of(tensor);
  size_t bytes = PyLong_AsSize_t(all[2]);
  bool may = from != to && to->nbytes() == 0 && from->nbytes() == bytes && tensor.storage().use_count() == 1 &&
             to->allocator() == from->allocator() && to->device() == from->device() && to->resizable() &&
             from->resizable();
  if (PyErr_Occurred()) return nullptr;
  if (may) {
    to->set_data_ptr(from->set_data_ptr(c10::DataPtr(nullptr, from->device())));
    to->set_nbytes(bytes);
    from->set_nbytes(0);
  }
  return PyBool_FromLong(may);
}

/* --- The module
 * ------------------------------------------------------------------------------------------------------- */

template <typename Function>
PyCFunction as_method(Function function) {
  return reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(function));
}

template <typename Function>
PyObject *to_address(Function *function) {
  return PyLong_FromVoidPtr(reinterpret_cast<void *>(function));
}

/* Of planrt_framework: `user`, and the functions that go with it. */
PyObject *framework_of(PyObject *self, void *) {
  return Py_BuildValue("{s:N,s:N,s:N,s:N}", "user", PyLong_FromVoidPtr(self), "address", to_address(address),
                       "allocate", to_address(allocate), "release", to_address(release));
}

PyMethodDef watch_methods[] = {{"see_call", as_method(see_call), METH_FASTCALL, nullptr},
                               {"see_function", as_method(see_function), METH_FASTCALL, nullptr},
                               {}};
PyMethodDef module_methods[] = {{"take_memory", as_method(take_memory), METH_FASTCALL, nullptr}, {}};
PyMethodDef plan_methods[] = {{"begin", as_method(begin_plan), METH_VARARGS | METH_KEYWORDS, nullptr}, {}};
PyGetSetDef plan_properties[] = {{"framework", framework_of, nullptr, nullptr, nullptr}, {}};

PyType_Slot watch_slots[] = {{Py_tp_new, reinterpret_cast<void *>(new_watch)}, {Py_tp_methods, watch_methods}, {}};
PyType_Slot plan_slots[] = {{Py_tp_new, reinterpret_cast<void *>(PyType_GenericNew)},
                            {Py_tp_traverse, reinterpret_cast<void *>(traverse_plan)},
                            {Py_tp_clear, reinterpret_cast<void *>(clear_plan)},
                            {Py_tp_dealloc, reinterpret_cast<void *>(free_plan)},
                            {Py_tp_getset, plan_properties},{Py_tp_methods, plan_methods},
                            {}};
/* There is one Watch, and as long as the process. */
PyType_Spec watch_spec = {"plain_calls.Watch", sizeof(Watch), 0, Py_TPFLAGS_DEFAULT, watch_slots};
PyType_Spec plan_spec = {"plain_calls.Plan", sizeof(Plan), 0, Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC, plan_slots};
PyModuleDef module_spec = {
    PyModuleDef_HEAD_INIT, "plain_calls", nullptr, -1, module_methods, nullptr, nullptr, nullptr, nullptr};

bool intern_names() {
  const std::pair<PyObject **, const char *> all[] = {{&names.iterations, "iterations"},
                                                      {&names.running, "running"},
                                                      {&names.aside, "aside"},
                                                      {&names.inside, "inside"},
                                                      {&names.plain, "plain"},
                                                      {&names.reason, "reason"},
                                                      {&names.at, "at"},
                                                      {&names.alike, "alike"},
                                                      {&names.memory, "memory"},
                                                      {&names.raised, "raised"},
                                                      {&names.check, "check"},
                                                      {&names.recall, "recall"},
                                                      {&names.made, "made"},
                                                      {&names.name, "__name__"},
                                                      {&names.resize, "resize_"},
                                                      {&names.cdata, "_cdata"},
                                                      {&names.data_ptr, "data_ptr"}};
  for (const auto &[to, text] : all) *to = PyUnicode_InternFromString(text);
  return !PyErr_Occurred();
}

}  // namespace

PyMODINIT_FUNC PyInit_plain_calls() {
  if (!intern_names()) return nullptr;
  Ref module(PyModule_Create(&module_spec)), watch(PyType_FromSpec(&watch_spec)), plan(PyType_FromSpec(&plan_spec));
  bool made = module && watch && plan && !PyModule_AddObjectRef(module.get(), "Watch", watch.get()) &&
              !PyModule_AddObjectRef(module.get(), "Plan", plan.get());
  return made ? module.give() : nullptr;
}
