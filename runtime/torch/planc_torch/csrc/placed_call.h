/* A call of a followed step with its memory where the plan has it. */
#ifndef PLANC_TORCH_PLACED_CALL_H
#define PLANC_TORCH_PLACED_CALL_H

#include "placing.h"
#include "plain_plan.h"

namespace {

constexpr int64_t NUMBER = 16; /* memory.NUMBER */

int64_t bytes_of(const Plan *plan, int32_t buffer) {
  return (*plan->bytes)[static_cast<size_t>(buffer)];
}

/* Moves away what was the plan's before and is its user's now. False: what is there cannot be moved, or is the plan's;
 * or it is more than the number that is to be there. */
bool clear(Plan *plan, int64_t address, int64_t bytes) {
  Placing *placing = plan->placing;
  std::vector<StorageRef> there;
  bool is_clear = find_there(placing, address, bytes, &there);
  if (!there.empty() && bytes <= NUMBER) return false;
  for (const StorageRef &storage : there) {
    if (buffer_in(plan, storage.get()) != NONE) {
      is_clear = false;
    } else if (move_out(placing, storage.get())) {
      placing->moved_out++;
    }
  }
  if (!is_clear) placing->refused++;
  return is_clear;
}

int64_t place_in(const Rooms *rooms, int32_t buffer) {
  for (int32_t k = 0; k < rooms->n; k++)
    if (rooms->buffers[k] == buffer) return rooms->addresses[k];
  return -1;
}

void prepare(Plan *plan, const Call &call, const Rooms *rooms, Session *session) {
  for (int32_t buffer : call.gives) {
    int64_t place = buffer == NONE ? -1 : place_in(rooms, buffer);
    bool is_had = place >= 0 && clear(plan, place, bytes_of(plan, buffer));
    session->reserve(is_had ? place : -1, is_had ? bytes_of(plan, buffer) : 0);
  }
  if (rooms->workspace_bytes > 0 && clear(plan, rooms->workspace, rooms->workspace_bytes))
    session->have_workspace(rooms->workspace, rooms->workspace_bytes);
}

/* What is new among a call's results, each storage once. */
void settle(Plan *plan, const Call &call, PyObject *result, Session *session) {
  std::vector<Found> results;
  if (!collect(plan->device, result, &results) || results.size() != call.gives.size()) return;
  for (size_t i = 0; i < results.size(); i++) {
    c10::StorageImpl *storage = storage_of(*results[i].tensor);
    bool has_size = call.gives[i] != NONE && static_cast<int64_t>(storage->nbytes()) == bytes_of(plan, call.gives[i]);
    if (has_size && buffer_in(plan, storage) == NONE) session->made(static_cast<int32_t>(i), storage);
  }
}

/* `is_again`: what it makes is dropped but for what has a place. */
PyObject *call_placed(Plan *plan, Py_ssize_t at, const Rooms *rooms, bool is_again, PyObject *function, PyObject *args,
                      PyObject *kwargs) {
  if (!plan->placing) return PyObject_Call(function, args, kwargs);
  const Call &call = (*plan->calls)[static_cast<size_t>(at)];
  std::vector<Slot> &slots = plan->placing->slots[static_cast<size_t>(at)];
  Ref result;
  try {
    Session of_call(plan->placing, slots, is_again);
    prepare(plan, call, rooms, &of_call);
    {
      Armed armed(&of_call, &plan->placing->n_running);
      result = Ref(PyObject_Call(function, args, kwargs));
    }
    if (!result) return nullptr;
    settle(plan, call, result.get(), &of_call);
    of_call.learn(&slots);
    plan->placing->scratch[static_cast<size_t>(at)] = of_call.scratch_beside();
  } catch (const std::exception &error) {
    PyErr_SetString(PyExc_MemoryError, error.what());
    return nullptr;
  }
  return PyErr_Occurred() ? nullptr : result.give();
}

}  // namespace

#endif
