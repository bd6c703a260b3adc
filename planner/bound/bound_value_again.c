/* What an op reads that runs again in a gap, and that no op of the order reads any more (bound_value.h).
 *
 * When the op runs, its inputs give way to what it makes. Where they have no more bytes together, that is best right
 * ahead of the gap's second use: each input that is copied in is then charged with its bytes from there up to the
 * second use, since the input is on the device as long, or what is made of it, which has no fewer. Where inputs have
 * more, the time when the op runs is open. The bytes of those that stay and of what is made are together linear in it,
 * so that the least is at the second use, or is no less than that of letting the version stay; those that are copied in
 * are taken to come when they are needed. */
#include "planner/bound/bound_value_state.h"

/* How an input is there, which costs least. */
typedef struct input_price {
  pl_signed_wide price;
  pl_bound_way way;
} input_price;

/* What holds for all inputs of an op. */
typedef struct op_again {
  const pl_again_window *window;
  bool gives_way; /* inputs have no more bytes than what is made of them, and that is so up to the gap's version */
} op_again;

static pl_bound_reads reads_of(const pl_bound_input *input, op_again of) {
  return (pl_bound_reads){input->first_input, input->n_inputs, of.gives_way ? input->bytes : 0};
}

static op_again op_of(const pl_bound_value *v, const pl_again_window *window, pl_bound_reads reads) {
  int64_t left = reads.made_bytes;
  for (int32_t k = reads.first; k < reads.first + reads.n && left >= 0; k++) {
    const pl_bound_input *input = &v->model->inputs[k];
    left -= input->bytes / input->n_readers + (input->bytes % input->n_readers > 0);
  }
  return (op_again){window, left >= 0};
}

/* --- Prices ------------------------------------------------------------------------------------------------------- */

/* Where it is copied out: at any time, since it may be computed again for that. */
static int32_t send_slot(const pl_bound_scratch *s, const op_again *of, const pl_bound_input *input) {
  return input->sent_from < 0 ? -1 : pl_range_least_of(&s->least_send, 2 * input->sent_from + 1, 2 * of->window->to);
}

static pl_signed_wide price_of_copies(const pl_bound_scratch *s, const op_again *of, const pl_bound_input *input) {
  const pl_again_window *window = of->window;
  int64_t in = of->gives_way ? s->back[window->back_slot] + s->bytes_before[window->to] : s->bring[window->bring_slot];
  int32_t slot = send_slot(s, of, input);
  pl_signed_wide out = slot < 0 ? 0 : (pl_signed_wide)input->bytes * s->send[slot] / input->n_askers;
  return (pl_signed_wide)input->bytes * in + out;
}

static input_price price_of_input(const pl_bound_value *v, op_again of, const pl_bound_input *input) {
  const pl_bound_scratch *s = v->scratch;
  const pl_again_window *window = of.window;
  input_price least = {.way = PL_BOUND_STAYS};
  least.price = (pl_signed_wide)input->bytes * (s->bytes_before[window->to] - s->bytes_before[window->from + 1]);
  if (input->may_leave) {
    pl_signed_wide price = price_of_copies(s, &of, input);
    if (price < least.price) least = (input_price){price, PL_BOUND_COPIED};
  }
  if (input->again_ns >= 0) {
    pl_signed_wide price = (pl_signed_wide)input->again_ns * s->again[window->again_slot] +
                           pl_bound_price_of_inputs(v, window, reads_of(input, of));
    if (price < least.price) least = (input_price){price, PL_BOUND_AGAIN};
  }
  return least;
}

pl_signed_wide pl_bound_price_of_inputs(const pl_bound_value *v, const pl_again_window *window, pl_bound_reads reads) {
  const op_again of = op_of(v, window, reads);
  pl_signed_wide sum = 0;
  for (int32_t k = reads.first; k < reads.first + reads.n; k++) {
    const pl_bound_input *input = &v->model->inputs[k];
    sum += price_of_input(v, of, input).price / input->n_readers;
  }
  return sum;
}

/* --- Slopes ------------------------------------------------------------------------------------------------------- */

static void take_copies(pl_bound_value *v, const op_again *of, const pl_bound_input *input, int64_t parts);

void pl_bound_take_inputs(pl_bound_value *v, const pl_again_window *window, pl_bound_reads reads, int64_t parts) {
  const pl_bound_scratch *s = v->scratch;
  const op_again of = op_of(v, window, reads);
  for (int32_t k = reads.first; k < reads.first + reads.n; k++) {
    const pl_bound_input *input = &v->model->inputs[k];
    const pl_bound_way way = price_of_input(v, of, input).way;
    int64_t own = pl_mul_saturate(parts, input->n_readers);
    if (way == PL_BOUND_STAYS) pl_bound_keep(v, window->from + 1, window->to, input->bytes / own);
    if (way == PL_BOUND_COPIED) take_copies(v, &of, input, own);
    if (way != PL_BOUND_AGAIN) continue;
    pl_bound_slope_of_time(v, window->again_slot, s->again[window->again_slot], input->again_ns / own);
    pl_bound_take_inputs(v, window, reads_of(input, of), own);
  }
}

static void take_copies(pl_bound_value *v, const op_again *of, const pl_bound_input *input, int64_t parts) {
  const pl_again_window *window = of->window;
  int32_t slot = send_slot(v->scratch, of, input);
  if (of->gives_way)
    pl_bound_copy_in(v, window->back_slot, window->to, input->bytes / parts);
  else
    pl_bound_slope_of_copy(v, window->bring_slot, PLANC_ROUTE_H2D, input->bytes / parts);
  if (slot >= 0) pl_bound_copy_out(v, slot, input->bytes / pl_mul_saturate(parts, input->n_askers));
}
