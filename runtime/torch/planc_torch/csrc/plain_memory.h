/* What libplanrt asks for (planrt_framework): Memory's methods of these names. */
#ifndef PLANC_TORCH_PLAIN_MEMORY_H
#define PLANC_TORCH_PLAIN_MEMORY_H

#include "placed_call.h"

namespace {

/* Runs `act` as a callback of libplanrt's; an exception waits in the follower until C has returned. */
template <typename Result, typename Act>
Result guarded(void *user, Result failure, Act act) {
  PyGILState_STATE state = PyGILState_Ensure();
  Plan *plan = static_cast<Plan *>(user);
  Result result = failure;
  try {
    result = act(plan);
  } catch (const std::exception &error) {
    PyErr_SetString(PyExc_MemoryError, error.what());
  }
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

/* PyTorch 1 has no other; later ones copy what several storages have until one of them is written. */
template <typename Storage>
auto pointer_to(Storage *storage, int) -> decltype(storage->mutable_data()) {
  return storage->mutable_data();
}

template <typename Storage>
void *pointer_to(Storage *storage, long) {
  return storage->data();
}

/* Whether a storage's memory is of PyTorch's allocator of the processor. */
bool is_allocators(const c10::StorageImpl *impl) {
  const c10::Allocator *before = arenas().before;
  c10::DeleterFnPtr deleter = impl->data_ptr().get_deleter();
  return deleter && (deleter == c10::GetAllocator(c10::DeviceType::CPU)->raw_deleter() ||
                     (before && deleter == before->raw_deleter()));
}

/* Whether another process has got it since it was bound. PyTorch 1 marks it so. */
bool is_shared(PyObject *storage, const c10::StorageImpl *impl) {
  if (impl->device().type() != c10::DeviceType::CPU || (impl->resizable() && is_allocators(impl))) return false;
  if (!impl->resizable()) return true;
  Ref is(PyObject_CallMethodNoArgs(storage, names.is_shared));
  return is && PyObject_IsTrue(is.get()) > 0;
}

void *address(void *user, int32_t buffer) {
  return guarded(user, static_cast<void *>(nullptr), [buffer](Plan *plan) -> void * {
    PyObject *storage = storage_in(plan, buffer);
    if (!storage || PySet_Contains(plan->parts.pinned, key_of(plan, buffer))) return nullptr;
    c10::StorageImpl *impl = impl_of(storage);
    if (!impl || static_cast<int64_t>(impl->nbytes()) != (*plan->bytes)[static_cast<size_t>(buffer)]) return nullptr;
    if (is_shared(storage, impl)) {
      PySet_Add(plan->parts.pinned, key_of(plan, buffer));
      return nullptr;
    }
    return pointer_to(impl, 0);
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

/* At an address of the arena, where that is free, or beside it. */
c10::DataPtr memory_at(Plan *plan, int64_t address, int64_t bytes) {
  Placing *placing = plan->placing;
  bool is_placed = address >= 0 && clear(plan, address, bytes) && take(placing, address, bytes, false);
  return is_placed ? owned(placing->arena->base + address) : allocate_beside(placing->beside, bytes);
}

int allocate(void *user, int32_t buffer, int64_t address) {
  return guarded(user, 1, [buffer, address](Plan *plan) -> int {
    Ref storage = Ref::to(storage_in(plan, buffer));
    if (!storage) return no_storage(buffer);
    if (!plan->placing) return !resize(storage.get(), bytes_of(plan, buffer));
    c10::StorageImpl *impl = impl_of(storage.get());
    if (!impl) return 1;
    impl->set_data_ptr(memory_at(plan, address, bytes_of(plan, buffer)));
    impl->set_nbytes(static_cast<size_t>(bytes_of(plan, buffer)));
    name_extent(impl);
    return 0;
  });
}

/* To an extent that overlaps the storage's own, at `from`. False: it is not to be had, and nothing is changed. */
bool slide(Plan *plan, c10::StorageImpl *impl, int64_t from, int64_t to) {
  Placing *placing = plan->placing;
  int64_t bytes = static_cast<int64_t>(impl->nbytes());
  {
    std::lock_guard<std::mutex> lock(arenas().mutex);
    placing->arena->extents.erase(from);
  }
  if (!clear(plan, to, bytes) || !take(placing, to, bytes, false)) {
    take(placing, from, bytes, false);
    name_extent(impl);
    return false;
  }
  memmove(placing->arena->base + to, placing->arena->base + from, static_cast<size_t>(bytes));
  impl->set_data_ptr(owned(placing->arena->base + to)).release_context();
  name_extent(impl);
  return true;
}

int move(void *user, int32_t buffer, int64_t address) {
  return guarded(user, 1, [buffer, address](Plan *plan) -> int {
    PyObject *storage = storage_in(plan, buffer);
    c10::StorageImpl *impl = storage ? impl_of(storage) : nullptr;
    if (!impl) return storage ? 1 : no_storage(buffer);
    const char *data = static_cast<const char *>(impl->data_ptr().get());
    int64_t at = is_in(plan->placing, impl) ? data - plan->placing->arena->base : -1, bytes = bytes_of(plan, buffer);
    bool overlaps = at >= 0 && address >= 0 && at < address + bytes && address < at + bytes;
    if (overlaps && address != at && slide(plan, impl, at, address)) return 0;
    if (address < 0 || overlaps) move_out(plan->placing, impl);
    if (address >= 0) move_to(impl, memory_at(plan, address, bytes));
    return 0;
  });
}

/* --- Ghosts: as a StorageWeakRef, made in a fraction of the time -------------------------------------------------- */

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

int release(void *user, int32_t buffer, bool last) {
  return guarded(user, 1, [buffer, last](Plan *plan) -> int {
    Ref storage = Ref::to(storage_in(plan, buffer));
    if (!storage) return last ? 0 : no_storage(buffer);
    if (last && bytes_of(plan, buffer) <= NUMBER) {
      if (c10::StorageImpl *impl = plan->placing ? impl_of(storage.get()) : nullptr) move_out(plan->placing, impl);
      return 0;
    }
    return last ? !drop(plan, key_of(plan, buffer), storage.get()) : !resize(storage.get(), 0);
  });
}

}  // namespace

#endif
