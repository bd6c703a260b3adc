/* Iteration.run in the plain case: a call that is the recorded one. */
#ifndef PLANC_TORCH_PLAIN_RUN_H
#define PLANC_TORCH_PLAIN_RUN_H

#include "placed_call.h"

namespace {

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
  Ref result(call_placed(plan, at, plan->rooms(plan->follow), false, function, args, kwargs));
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

}  // namespace

#endif
