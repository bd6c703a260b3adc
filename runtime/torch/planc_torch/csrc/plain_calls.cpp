/* The plain case of what planc_torch's watching.py, iteration.py and memory.py do for each call of a followed step, in
 * less time. What a call is held against, and all that is known of storages, is Python's: the same dictionaries are
 * read and written here. Whatever is not the plain case is left to Python before anything is done about it, so that
 * what differs, and what is told of it, is said in one place.
 *
 * A module of one version of Python and of PyTorch, without global state but for interned names, what frees memory
 * (torch_arena.h) and who is asked of other threads (other_threads.h). */
#include <Python.h>
#include <structmember.h>

#include <exception>
#include <unordered_map>
#ifdef __GLIBC__
#include <malloc.h>
#endif

#include "other_threads.h"
#include "plain_memory.h"
#include "plain_run.h"
#include "plan_placing.h"

namespace {

/* --- Plan in Python ----------------------------------------------------------------------------------------------- */

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

/* scratch.uses. */
bool read_slots(PyObject *list, std::vector<Slot> *slots) {
  for (Py_ssize_t i = 0; i + 1 < PyList_Size(list); i += 2)
    slots->push_back(
        {PyLong_AsLongLong(PyList_GetItem(list, i)), static_cast<int32_t>(PyLong_AsLong(PyList_GetItem(list, i + 1)))});
  return !PyErr_Occurred();
}

/* `calls`: of each its PlannedCall, the buffers that it is given and gives, whether it is repeated, and what it
 * allocates. `bytes` of all buffers. Addresses are those of libplanrt's functions. `arena_bytes`: of an arena for
 * memory at the plan's addresses, 0 = there is none. */
PyObject *begin_plan(PyObject *self, PyObject *args, PyObject *keywords) {
  static const char *const known[] = {"device", "calls",    "bytes",    "follow",     "next",        "done",
                                      "rooms",  "follower", "storages", "buffers",    "dropped",     "ghosts",
                                      "kept",   "lasting",  "pinned",   "storage_of", "arena_bytes", nullptr};
  Plan *plan = reinterpret_cast<Plan *>(self);
  const char *device;
  PyObject *calls, *bytes;
  unsigned long long follow, next, done, rooms;
  long long arena_bytes;
  Parts parts;
  if (!PyArg_ParseTupleAndKeywords(
          args, keywords, "sO!O!KKKKOO!O!O!O!O!O!O!OL", const_cast<char **>(known), &device, &PyList_Type, &calls,
          &PyList_Type, &bytes, &follow, &next, &done, &rooms, &parts.follower, &PyDict_Type, &parts.storages,
          &PyDict_Type, &parts.buffers, &PyDict_Type, &parts.dropped, &PyDict_Type, &parts.ghosts, &PySet_Type,
          &parts.kept, &PySet_Type, &parts.lasting, &PySet_Type, &parts.pinned, &parts.storage_of, &arena_bytes))
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
  plan->rooms = reinterpret_cast<RoomsOf>(rooms);
  std::vector<std::vector<Slot>> slots(plan->calls->size());
  for (Py_ssize_t i = 0; i < PyList_GET_SIZE(calls); i++) {
    Call &call = (*plan->calls)[static_cast<size_t>(i)];
    PyObject *planned, *given, *gives, *allocated;
    int repeats;
    if (!PyArg_ParseTuple(PyList_GET_ITEM(calls, i), "OO!O!pO!", &planned, &PyList_Type, &given, &PyList_Type, &gives,
                          &repeats, &PyList_Type, &allocated) ||
        !read_buffers(given, &call.given) || !read_buffers(gives, &call.gives) ||
        !read_slots(allocated, &slots[static_cast<size_t>(i)]))
      return nullptr;
    call.planned = Ref::to(planned);
    call.repeats = repeats;
  }
  for (Py_ssize_t i = 0; i < PyList_GET_SIZE(bytes); i++) {
    plan->bytes->push_back(PyLong_AsLongLong(PyList_GET_ITEM(bytes, i)));
    plan->numbers->push_back(Ref(PyLong_FromSsize_t(i)));
  }
  if (PyErr_Occurred() || (arena_bytes > 0 && !begin_placing(plan, arena_bytes, std::move(slots)))) return nullptr;
  return Py_NewRef(Py_None);
}

void free_plan(PyObject *self) {
  PyTypeObject *type = Py_TYPE(self);
  Plan *plan = reinterpret_cast<Plan *>(self);
  PyObject_GC_UnTrack(self);
  clear_plan(self);
  end_placing(plan);
  delete plan->calls;
  delete plan->bytes;
  delete plan->numbers;
  type->tp_free(self);
  Py_DECREF(type);
}

/* --- What is seen of calls: watching.Calls ------------------------------------------------------------------------ */

struct Watch {
  PyObject_HEAD PyObject *watched, *only_views, *other_call;
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
    if (given.empty()) return Way::other;
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

/* Of a mode, as a method of which it is called: mode, function, types, args, kwargs. */
PyObject *see_call(PyObject *self, PyObject *const *given, Py_ssize_t n_given) {
  Watch *watch = watch_of(self);
  PyObject *const *all = given + 1;
  Py_ssize_t n = n_given - 1;
  if (n < 3 || !PyTuple_Check(all[2]))
    return PyObject_Vectorcall(watch->other_call, all, static_cast<size_t>(n), nullptr);
  PyObject *kwargs = n > 3 && PyDict_Check(all[3]) && PyDict_Size(all[3]) > 0 ? all[3] : nullptr;
  Ref iterations = attribute(watch->watched, names.iterations), aside = attribute(watch->watched, names.aside);
  if (!iterations || !aside) return nullptr;
  bool passes = PyList_Size(iterations.get()) == 0 || aside.get() == Py_True;
  Ref iteration = passes ? Ref() : alone(watch, iterations.get());
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

PyObject *new_watch(PyTypeObject *type, PyObject *args, PyObject *) {
  PyObject *parts[3];
  if (!PyArg_ParseTuple(args, "OOO", &parts[0], &parts[1], &parts[2])) return nullptr;
  Watch *watch = watch_of(type->tp_alloc(type, 0));
  if (!watch) return nullptr;
  for (int i = 0; i < 3; i++) (&watch->watched)[i] = Py_NewRef(parts[i]);
  watch->views = new std::unordered_map<PyObject *, bool>;
  return reinterpret_cast<PyObject *>(watch);
}

/* --- Storages ----------------------------------------------------------------------------------------------------- */

/* Whether nothing but a tensor has its storage. In PyTorch 2 the storage and its object in Python may own each other.
 */
bool is_its_alone(const at::Tensor &tensor, PyObject *object, PyObject *storage_of) {
  if (tensor.storage().use_count() != 2) return tensor.storage().use_count() == 1;
  Ref storage(PyObject_CallOneArg(storage_of, object));
  return storage && tensor.storage().use_count() == 2 && Py_REFCNT(storage.get()) == 2;
}

/* The buffers of what persists whose storages nobody has but the plan. */
PyObject *gone(PyObject *self, PyObject *) {
  Plan *plan = reinterpret_cast<Plan *>(self);
  Ref list(PyList_New(0));
  PyObject *key, *storage;
  for (Py_ssize_t at = 0; list && PyDict_Next(plan->parts.storages, &at, &key, &storage);) {
    if (Py_REFCNT(storage) > 1 || !PySet_Contains(plan->parts.lasting, key)) continue;
    c10::StorageImpl *impl = impl_of(storage);
    if (!impl || (c10::raw::intrusive_ptr::use_count(impl) == 1 && PyList_Append(list.get(), key))) return nullptr;
  }
  return list.give();
}

/* Moves the memory of a tensor that is used no more into a storage that has none; False where it cannot be had: it is
 * of another size, is not the tensor's alone, or is not of the same allocator. */
PyObject *take_memory(PyObject *, PyObject *const *all, Py_ssize_t n) {
  c10::StorageImpl *to = n == 4 ? impl_of(all[0]) : nullptr;
  if (!to || !THPVariable_Check(all[1]))
    return PyErr_Occurred() ? nullptr : PyErr_Format(PyExc_TypeError, "storage, tensor, bytes, storage_of");
  const at::Tensor &tensor = THPVariable_Unpack(all[1]);
  c10::StorageImpl *from = storage_of(tensor);
  size_t bytes = PyLong_AsSize_t(all[2]);
  bool may = from != to && to->nbytes() == 0 && from->nbytes() == bytes && is_its_alone(tensor, all[1], all[3]) &&
             to->allocator() == from->allocator() && to->device() == from->device() && to->resizable() &&
             from->resizable();
  if (PyErr_Occurred()) return nullptr;
  if (may) {
    to->set_data_ptr(from->set_data_ptr(c10::DataPtr(nullptr, from->device())));
    to->set_nbytes(bytes);
    from->set_nbytes(0);
    name_extent(to);
  }
  return PyBool_FromLong(may);
}

/* Makes a storage one that can be emptied, where its memory is the allocator's and nobody else's, as that is of what
 * was loaded from a file, which PyTorch gives no allocator. False: it stays one that cannot, such as one with an
 * allocator, which an array has. */
PyObject *make_resizable(PyObject *, PyObject *storage) {
  c10::StorageImpl *impl = impl_of(storage);
  if (!impl) return nullptr;
  if (impl->resizable()) return Py_NewRef(Py_True);
  bool is_cpus = impl->device().type() == c10::DeviceType::CPU;
  if (!is_cpus || impl->allocator() || !is_allocators(impl)) return Py_NewRef(Py_False);
  impl->set_allocator(c10::GetAllocator(c10::DeviceType::CPU));
  impl->set_resizable(true);
  return Py_NewRef(Py_True);
}

/* Where storages are that are only viewed: bindings refuse one that has bytes and is nowhere. */
char nowhere;

/* Has a storage without memory say that it has so many bytes, for views of it; or again none. */
PyObject *say_bytes(PyObject *, PyObject *const *all, Py_ssize_t n) {
  c10::StorageImpl *impl = n == 2 ? impl_of(all[0]) : nullptr;
  if (!impl) return PyErr_Occurred() ? nullptr : PyErr_Format(PyExc_TypeError, "storage, bytes");
  size_t bytes = PyLong_AsSize_t(all[1]);
  if (PyErr_Occurred()) return nullptr;
  impl->set_data_ptr(c10::DataPtr(bytes > 0 ? &nowhere : nullptr, impl->device()));
  impl->set_nbytes(bytes);
  return Py_NewRef(Py_None);
}

/* Of storages that weak references in a dict by address keep: the bytes that they have, but for those that only say so,
 * and a list of the addresses of those that are gone. */
PyObject *bytes_of(PyObject *, PyObject *by_address) {
  Ref gone(PyList_New(0));
  PyObject *address = nullptr;
  Py_ssize_t at = 0, total = 0;
  if (!gone || !PyDict_Check(by_address)) return PyErr_Format(PyExc_TypeError, "bytes_of takes a dict");
  while (PyDict_Next(by_address, &at, &address, nullptr)) {
    auto *impl = static_cast<c10::StorageImpl *>(PyLong_AsVoidPtr(address));
    if (!impl) return nullptr;
    if (c10::raw::weak_intrusive_ptr::use_count(impl) == 0) {
      if (PyList_Append(gone.get(), address) != 0) return nullptr;
    } else if (impl->data_ptr().get() != &nowhere) {
      total += static_cast<Py_ssize_t>(impl->nbytes());
    }
  }
  return Py_BuildValue("(nO)", total, gone.get());
}

/* Gives the system what the allocator has got back and keeps. */
PyObject *trim(PyObject *, PyObject *) {
#ifdef __GLIBC__
  malloc_trim(0);
#endif
  return Py_NewRef(Py_None);
}

/* --- Allocations -------------------------------------------------------------------------------------------------- */

/* Whether they are seen from now on. */
PyObject *see_allocations(PyObject *, PyObject *) {
  return PyBool_FromLong(install_allocator());
}

/* What a function gives for a tuple of arguments, and the list of what it allocates and frees in this thread: addresses
 * and bytes, 0 where it is freed. */
PyObject *allocations_of(PyObject *, PyObject *const *all, Py_ssize_t n) {
  if (n != 2 || !PyTuple_Check(all[1])) return PyErr_Format(PyExc_TypeError, "function, arguments");
  std::vector<Change> made, *outer = std::exchange(changes, &made);
  Ref result(PyObject_CallObject(all[0], all[1]));
  changes = outer;
  if (!result) return nullptr;
  Ref list(PyList_New(0));
  for (const Change &change : made) {
    Ref pair(Py_BuildValue("(NL)", PyLong_FromVoidPtr(change.data), static_cast<long long>(change.bytes)));
    if (!list || !pair || PyList_Append(list.get(), pair.get())) return nullptr;
  }
  return list ? Py_BuildValue("(NN)", result.give(), list.give()) : nullptr;
}

/* --- The module --------------------------------------------------------------------------------------------------- */

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
  return Py_BuildValue("{s:N,s:N,s:N,s:N,s:N}", "user", PyLong_FromVoidPtr(self), "address", to_address(address),
                       "allocate", to_address(allocate), "move", to_address(move), "release", to_address(release));
}

PyMethodDef watch_methods[] = {{"see_call", as_method(see_call), METH_FASTCALL, nullptr}, {}};
PyMethodDef module_methods[] = {{"take_memory", as_method(take_memory), METH_FASTCALL, nullptr},
                                {"allocations", as_method(allocations_of), METH_FASTCALL, nullptr},
                                {"see_allocations", see_allocations, METH_NOARGS, nullptr},
                                {"make_resizable", make_resizable, METH_O, nullptr},
                                {"say_bytes", as_method(say_bytes), METH_FASTCALL, nullptr},
                                {"bytes_of", bytes_of, METH_O, nullptr},
                                {"trim", trim, METH_NOARGS, nullptr},
                                {"ask_of_others", ask_of_others, METH_O, nullptr},
                                {"say_seen", say_seen, METH_O, nullptr},
                                {}};
PyMethodDef plan_methods[] = {{"begin", as_method(begin_plan), METH_VARARGS | METH_KEYWORDS, nullptr},
                              {"call", call_of_plan, METH_VARARGS, nullptr},
                              {"hand_out", hand_out, METH_O, nullptr},
                              {"gone", gone, METH_NOARGS, nullptr},
                              {"leave_arena", leave_arena, METH_NOARGS, nullptr},
                              {"watch_arena", watch_arena, METH_O, nullptr},
                              {}};
PyMemberDef plan_members[] = {{"made", T_PYSSIZET, offsetof(Plan, made), READONLY, nullptr}, {}};
PyGetSetDef plan_properties[] = {
    {"framework", framework_of, nullptr, nullptr, nullptr}, {"placing", placing_of, nullptr, nullptr, nullptr}, {}};

PyType_Slot watch_slots[] = {{Py_tp_new, reinterpret_cast<void *>(new_watch)}, {Py_tp_methods, watch_methods}, {}};
PyType_Slot plan_slots[] = {{Py_tp_new, reinterpret_cast<void *>(PyType_GenericNew)},
                            {Py_tp_traverse, reinterpret_cast<void *>(traverse_plan)},
                            {Py_tp_clear, reinterpret_cast<void *>(clear_plan)},
                            {Py_tp_dealloc, reinterpret_cast<void *>(free_plan)},
                            {Py_tp_getset, plan_properties},
                            {Py_tp_methods, plan_methods},
                            {Py_tp_members, plan_members},
                            {}};
PyMethodDef ghost_methods[] = {{"expired", is_expired, METH_NOARGS, nullptr}, {}};
PyMemberDef ghost_members[] = {{"cdata", T_ULONGLONG, offsetof(Ghost, storage), READONLY, nullptr}, {}};
PyType_Slot ghost_slots[] = {{Py_tp_dealloc, reinterpret_cast<void *>(free_ghost)},
                             {Py_tp_methods, ghost_methods},
                             {Py_tp_members, ghost_members},
                             {}};
PyType_Spec ghost_spec = {"plain_calls.Ghost", sizeof(Ghost), 0, Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
                          ghost_slots};
/* There are few, and most as long as the process. */
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
                                                      {&names.refuse_failed, "refuse_failed"},
                                                      {&names.resize, "resize_"},
                                                      {&names.cdata, "_cdata"},
                                                      {&names.is_shared, "is_shared"}};
  for (const auto &[to, text] : all) *to = PyUnicode_InternFromString(text);
  return !PyErr_Occurred();
}

}  // namespace

PyMODINIT_FUNC PyInit_plain_calls() {
  if (!intern_names()) return nullptr;
  ghost_type = reinterpret_cast<PyTypeObject *>(PyType_FromSpec(&ghost_spec));
  Ref module(PyModule_Create(&module_spec)), watch(PyType_FromSpec(&watch_spec)), plan(PyType_FromSpec(&plan_spec));
  bool made = ghost_type && module && watch && plan && !PyModule_AddObjectRef(module.get(), "Watch", watch.get()) &&
              !PyModule_AddObjectRef(module.get(), "Plan", plan.get());
  return made ? module.give() : nullptr;
}
