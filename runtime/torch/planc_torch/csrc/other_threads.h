/* Sees calls in threads of Python's that have no mode of this package (watching.py): those that were there before a
 * step was followed, however they were started. PyTorch has a place that all calls of a process pass, which is for
 * profilers. What is asked there may have the call wait; it cannot make it fail. */
#ifndef PLANC_TORCH_OTHER_THREADS_H
#define PLANC_TORCH_OTHER_THREADS_H

#include <ATen/record_function.h>
#include <c10/core/impl/LocalDispatchKeySet.h>
#include <torch/csrc/autograd/python_variable.h>

#include <atomic>

#include "plain_plan.h"

namespace {

/* Asked with a list of a call's tensors, before it is made; gives None, or what is closed when it has been made. */
std::atomic<PyObject *> asked{nullptr};
at::CallbackHandle asking;
thread_local bool is_seen = false;   /* by a mode of this thread */
thread_local bool is_within = false; /* a call, all within which is its own */

struct Visit : at::ObserverContext {
  PyObject *visit = nullptr;
};

void add_tensors(const c10::IValue &value, std::vector<at::Tensor> *tensors) {
  if (value.isTensor()) {
    const at::Tensor &tensor = value.toTensor();
    if (tensor.defined() && tensor.has_storage() && tensor.numel() > 0) tensors->push_back(tensor);
  } else if (value.isList()) {
    for (const c10::IValue &part : value.toListRef())
      if (part.isTensor()) add_tensors(part, tensors);
  }
}

PyObject *visit_of(const std::vector<at::Tensor> &tensors) {
  Ref list(PyList_New(0));
  bool is_made = static_cast<bool>(list);
  for (const at::Tensor &tensor : tensors) {
    if (!is_made) break;
    Ref wrapped(THPVariable_Wrap(tensor));
    is_made = wrapped && !PyList_Append(list.get(), wrapped.get());
  }
  Ref ask(Ref::to(asked.load()));
  Ref visit(is_made && ask ? PyObject_CallOneArg(ask.get(), list.get()) : nullptr);
  if (PyErr_Occurred()) PyErr_WriteUnraisable(ask.get());
  return visit && visit.get() != Py_None ? visit.give() : nullptr;
}

/* PyTorch's own threads for backward passes have the modes of the thread that asked for one, and are none of Python's
 * on the processor. Within a mode it is away; what is called there is within the call that came to it. */
std::unique_ptr<at::ObserverContext> begin_call(const at::RecordFunction &function) {
  if (is_seen || is_within || !asked.load() || !PyGILState_GetThisThreadState()) return nullptr;
  auto context = std::make_unique<Visit>();
  std::vector<at::Tensor> tensors;
  if (!c10::impl::tls_is_dispatch_key_included(c10::DispatchKey::Python))
    for (const c10::IValue &value : function.inputs()) add_tensors(value, &tensors);
  is_within = true;
  if (!tensors.empty()) {
    PyGILState_STATE state = PyGILState_Ensure();
    context->visit = visit_of(tensors);
    PyGILState_Release(state);
  }
  return context;
}

void end_call(const at::RecordFunction &, at::ObserverContext *context) {
  if (!context) return;
  is_within = false;
  PyObject *visit = static_cast<Visit *>(context)->visit;
  if (!visit) return;
  PyGILState_STATE state = PyGILState_Ensure();
  Ref closed(PyObject_CallMethod(visit, "close", nullptr));
  if (!closed) PyErr_WriteUnraisable(visit);
  Py_DECREF(visit);
  PyGILState_Release(state);
}

/* ask_of_others(function), or with None no more. */
PyObject *ask_of_others(PyObject *, PyObject *function) {
  PyObject *ask = function == Py_None ? nullptr : function;
  Py_XINCREF(ask);
  PyObject *before = asked.exchange(ask);
  if (ask && !before)
    asking = at::addGlobalCallback(
        at::RecordFunctionCallback(begin_call, end_call).needsInputs(true).scopes({at::RecordScope::FUNCTION}));
  if (!ask && before) at::removeCallback(asking);
  Py_XDECREF(before);
  Py_RETURN_NONE;
}

/* say_seen(is_seen): of the thread that calls this. */
PyObject *say_seen(PyObject *, PyObject *value) {
  is_seen = PyObject_IsTrue(value) == 1;
  Py_RETURN_NONE;
}

}  // namespace

#endif
