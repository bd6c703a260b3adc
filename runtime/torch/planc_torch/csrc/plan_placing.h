/* What Python asks of a plan's memory (memory.py, following.py): an arena for it, calls in it, and how it fares. */
#ifndef PLANC_TORCH_PLAN_PLACING_H
#define PLANC_TORCH_PLAN_PLACING_H

#include "plain_memory.h"

namespace {

/* `slots`: what calls are expected to allocate. */
bool begin_placing(Plan *plan, int64_t bytes, std::vector<std::vector<Slot>> slots) {
  if (!install_allocator()) {
    PyErr_SetString(PyExc_RuntimeError, "PyTorch's memory is of an allocator that does not free by address");
    return false;
  }
  try {
    auto arena = std::make_shared<Arena>(bytes);
    plan->placing =
        new Placing{arena, std::make_shared<Beside>(), std::move(slots), std::vector<int64_t>(plan->calls->size())};
    std::lock_guard<std::mutex> lock(arenas().mutex);
    arenas().by_base[arena->base] = arena;
  } catch (const std::exception &) {
    PyErr_Format(PyExc_MemoryError, "%lld bytes for the plan's arena", static_cast<long long>(bytes));
    return false;
  }
  return true;
}

/* The arena stays as long as there are storages in it. */
void end_placing(Plan *plan) {
  if (!plan->placing) return;
  std::shared_ptr<Arena> arena = plan->placing->arena, gone;
  {
    std::lock_guard<std::mutex> lock(arenas().mutex);
    arena->is_closed = true;
    forget_if_empty(arenas(), arena, &gone);
  }
  delete plan->placing;
  plan->placing = nullptr;
}

/* Memory.call: at, address of planrt_rooms, is_again, function, args, kwargs. */
PyObject *call_of_plan(PyObject *self, PyObject *args) {
  Plan *plan = reinterpret_cast<Plan *>(self);
  Py_ssize_t at;
  unsigned long long rooms;
  int is_again;
  PyObject *function, *given, *named;
  if (!PyArg_ParseTuple(args, "nKpOO!O!", &at, &rooms, &is_again, &function, &PyTuple_Type, &given, &PyDict_Type,
                        &named))
    return nullptr;
  if (at < 0 || at >= static_cast<Py_ssize_t>(plan->calls->size()))
    return PyErr_Format(PyExc_IndexError, "call %zd", at);
  return call_placed(plan, at, reinterpret_cast<const Rooms *>(rooms), is_again, function, given, named);
}

/* Moves a storage's memory out of the arena, for good; while a call is being made, which may use it, it stays there. */
PyObject *hand_out(PyObject *self, PyObject *storage) {
  Plan *plan = reinterpret_cast<Plan *>(self);
  c10::StorageImpl *impl = impl_of(storage);
  if (!impl) return nullptr;
  try {
    if (plan->placing && plan->placing->n_running > 0)
      fix_extent(impl);
    else if (plan->placing)
      move_out(plan->placing, impl);
    return Py_NewRef(Py_None);
  } catch (const std::exception &error) {
    return PyErr_Format(PyExc_MemoryError, "%s", error.what());
  }
}

/* Moves all out of the arena, which goes. */
PyObject *leave_arena(PyObject *self, PyObject *) {
  Plan *plan = reinterpret_cast<Plan *>(self);
  std::vector<StorageRef> there;
  try {
    if (plan->placing) find_there(plan->placing, 0, plan->placing->arena->bytes, &there);
    for (const StorageRef &storage : there) move_out(plan->placing, storage.get());
  } catch (const std::exception &error) {
    return PyErr_Format(PyExc_MemoryError, "%s", error.what());
  }
  end_placing(plan);
  return Py_NewRef(Py_None);
}

/* What was done, in a dictionary; nothing without an arena. */
PyObject *placing_of(PyObject *self, void *) {
  const Placing *placing = reinterpret_cast<Plan *>(self)->placing;
  if (!placing) return Py_NewRef(Py_None);
  Beside beside;
  int64_t in_use = 0;
  {
    std::lock_guard<std::mutex> lock(arenas().mutex);
    beside = *placing->beside;
    for (const auto &[address, extent] : placing->arena->extents) in_use += extent.bytes;
  }
  Ref scratch(PyList_New(0));
  for (int64_t bytes : placing->scratch) {
    Ref number(PyLong_FromLongLong(bytes));
    if (!scratch || !number || PyList_Append(scratch.get(), number.get())) return nullptr;
  }
  return Py_BuildValue("{s:N,s:N,s:L,s:L,s:L,s:L,s:L,s:L,s:L}", "scratch", scratch.give(), "arena",
                       PyLong_FromVoidPtr(placing->arena->base), "bytes", placing->arena->bytes, "in_use", in_use,
                       "beside", beside.bytes, "most_beside", beside.peak, "moved_in", placing->moved_in, "moved_out",
                       placing->moved_out, "refused", placing->refused);
}

/* Counts `most_beside` anew; `poisons`: memory that is given back is overwritten from now on. */
PyObject *watch_arena(PyObject *self, PyObject *poisons) {
  const Placing *placing = reinterpret_cast<Plan *>(self)->placing;
  if (!placing) return Py_NewRef(Py_None);
  std::lock_guard<std::mutex> lock(arenas().mutex);
  placing->beside->peak = placing->beside->bytes;
  placing->arena->poisons = PyObject_IsTrue(poisons) == 1;
  return Py_NewRef(Py_None);
}

}  // namespace

#endif
