/* What is charged for inputs of an op that runs again in a gap, where no op of the order reads them any more
 * (pl_bound_input). Each reader of an input pays a part of it (n_readers), so that one stay, copy or run may serve all.
 *
 * Until the op runs its inputs are on the device, and from then on what it makes is. Where their parts have no more
 * bytes together than what is made (gives_way), an input that is copied in is charged with its bytes from then on up to
 * the gap's second use, whenever the op runs. Else it is charged with its copy alone. An input that stays is charged up
 * to the second use in both cases: what it takes is linear in the time when the op runs, and if that is at once it is
 * no less than if the version had stayed. */
#include "planner/bound/bound_value_state.h"

/* How an input is there, which costs least. */
typedef struct input_price {
  pl_signed_wide price;
  pl_bound_way way;
} input_price;

/* What holds for all inputs of an op. */
typedef struct op_again {
  const pl_bound_window *window;
  bool gives_way; /* inputs have no more bytes than what is made of them, and that is so up to the gap's version */
} op_again;

static op_again op_of(const pl_bound_value *v, const pl_bound_window *window, pl_bound_inputs inputs);
static input_price price_of_input(const pl_bound_value *v, const op_again *of, const pl_bound_input *input);

pl_signed_wide pl_bound_price_of_inputs(const pl_bound_value *v, const pl_bound_window *window,
                                        pl_bound_inputs inputs) {
  const op_again of = op_of(v, window, inputs);
  pl_signed_wide sum = 0;
  for (int32_t k = inputs.first; k < inputs.first + inputs.n; k++) {
    const pl_bound_input *input = &v->model->inputs[k];
    sum += price_of_input(v, &of, input).price / input->n_readers;
  }
  return sum;
}

static op_again op_of(const pl_bound_value *v, const pl_bound_window *window, pl_bound_inputs inputs) {
  int64_t left = inputs.made_bytes;
  for (int32_t k = inputs.first; k < inputs.first + inputs.n && left >= 0; k++) {
    const pl_bound_input *input = &v->model->inputs[k];
    left -= input->bytes / input->n_readers + (input->bytes % input->n_readers > 0);
  }
  return (op_again){window, left >= 0};
}

static pl_signed_wide price_of_copies(const pl_bound_scratch *s, const op_again *of, const pl_bound_input *input);
static pl_bound_inputs inputs_of_input(const pl_bound_input *input, const op_again *of);

static input_price price_of_input(const pl_bound_value *v, const op_again *of, const pl_bound_input *input) {
  const pl_bound_scratch *s = v->scratch;
  const pl_bound_window *window = of->window;
  input_price least = {.way = PL_BOUND_STAYS};
  least.price = (pl_signed_wide)input->bytes * (s->bytes_before[window->to] - s->bytes_before[window->from + 1]);
  if (input->may_leave) {
    pl_signed_wide price = price_of_copies(s, of, input);
    if (price < least.price) least = (input_price){price, PL_BOUND_COPIED};
  }
  if (input->again_ns >= 0) {
    pl_signed_wide price = (pl_signed_wide)input->again_ns * s->again[window->again_slot] +
                           pl_bound_price_of_inputs(v, window, inputs_of_input(input, of));
    if (price < least.price) least = (input_price){price, PL_BOUND_AGAIN};
  }
  return least;
}

static int32_t send_slot(const pl_bound_scratch *s, const op_again *of, const pl_bound_input *input);

static pl_signed_wide price_of_copies(const pl_bound_scratch *s, const op_again *of, const pl_bound_input *input) {
  const pl_bound_window *window = of->window;
  int64_t in = of->gives_way ? s->back[window->back_slot] + s->bytes_before[window->to] : s->bring[window->bring_slot];
  int32_t slot = send_slot(s, of, input);
  pl_signed_wide out = slot < 0 ? 0 : (pl_signed_wide)input->bytes * s->send[slot] / input->n_askers;
  return (pl_signed_wide)input->bytes * in + out;
}

/* Where it is copied out: at any time, since it may be computed again for that. */
static int32_t send_slot(const pl_bound_scratch *s, const op_again *of, const pl_bound_input *input) {
  return input->sent_from < 0 ? -1 : pl_range_least_of(&s->least_send, 2 * input->sent_from + 1, 2 * of->window->to);
}

static pl_bound_inputs inputs_of_input(const pl_bound_input *input, const op_again *of) {
  return (pl_bound_inputs){input->first_input, input->n_inputs, of->gives_way ? input->bytes : 0};
}

/* --- Slopes ------------------------------------------------------------------------------------------------------- */

static void take_copies(pl_bound_value *v, const op_again *of, const pl_bound_input *input, int64_t parts);

void pl_bound_take_inputs(pl_bound_value *v, const pl_bound_window *window, pl_bound_inputs inputs, int64_t parts) {
  const pl_bound_scratch *s = v->scratch;
  const op_again of = op_of(v, window, inputs);
  for (int32_t k = inputs.first; k < inputs.first + inputs.n; k++) {
    const pl_bound_input *input = &v->model->inputs[k];
    const pl_bound_way way = price_of_input(v, &of, input).way;
    int64_t own = pl_mul_saturate(parts, input->n_readers);
    if (way == PL_BOUND_STAYS) pl_bound_keep(v, window->from + 1, window->to, input->bytes / own);
    if (way == PL_BOUND_COPIED) take_copies(v, &of, input, own);
    if (way != PL_BOUND_AGAIN) continue;
    pl_bound_slope_of_time(v, window->again_slot, s->again[window->again_slot], input->again_ns / own);
    pl_bound_take_inputs(v, window, inputs_of_input(input, &of), own);
  }
}

static void take_copies(pl_bound_value *v, const op_again *of, const pl_bound_input *input, int64_t parts) {
  const pl_bound_window *window = of->window;
  int32_t slot = send_slot(v->scratch, of, input);
  if (of->gives_way)
    pl_bound_copy_in(v, window->back_slot, window->to, input->bytes / parts);
  else
    pl_bound_slope_of_copy(v, window->bring_slot, PLANC_ROUTE_H2D, input->bytes / parts);
  if (slot >= 0)
    pl_bound_slope_of_copy(v, slot, PLANC_ROUTE_D2H, input->bytes / pl_mul_saturate(parts, input->n_askers));
}
