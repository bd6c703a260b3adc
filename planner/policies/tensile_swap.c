/* How `tensile` swaps (papers/002, IV-C, Algorithm 2; tensile.c).
 *
 * A swap is of the stretch between two accesses around the peak. The swap-out is as early as possible behind the access
 * that generates the tensor, the swap-in as late as possible ahead of the access that ends the stretch; neither runs
 * beside an access of the tensor. There is one link, which one copy has at a time in either direction, and on which the
 * copies of inputs and results are from the beginning. A swap whose copies find no time of which the peak is in between
 * is not scheduled; other tensors are then tried by descending size. The host keeps what was copied out: later
 * stretches of the same tensor need a swap-in alone, and those that find time are scheduled along with the first (line
 * 34 of the algorithm).
 *
 * Across iterations: a parameter, or what else persists, is swapped out behind its update and swapped in ahead of the
 * next iteration's first access, also where the peak is behind that. At the end of an iteration nothing must be left on
 * the link (III-D), which is little time behind an update. A swap-out that does not end within the iteration begins in
 * the next one, behind its first op: the paper does not say so, but state of an optimizer would hardly ever leave
 * otherwise. What the period never writes has its copy on the host for good.
 *
 * The rate: the paper's is a job's share of all tensors that are swapped, which limits nothing where there is one job;
 * here it is, as in the authors' program, the share of the job's tensors that may be swapped. */
#include "planner/policies/tensile.h"
#include "util/math.h"

enum { MILLION = 1000000 };

/* --- Times -------------------------------------------------------------------------------------------------------- */

static int32_t instance_at(const tensile *t, int32_t position) {
  return t->trace->accesses[t->trace->by_buffer[position]].instance;
}

/* --- Planning a swap ---------------------------------------------------------------------------------------------- */

typedef struct swap {
  tensile_tensor *tensor; /* the version that is away */
  bool copies;            /* there is a swap-out, at out_start */
  int64_t out_start, in_start;
  int32_t copy, leave, fetch;
} swap;

/* Finds a swap-out ahead of the access behind `position`: between two accesses, the first of which is no later than
 * that. A tensor that is there before the period can also be copied ahead of its first access. The link only fills, so
 * that where nothing was found nothing is sought again. */
static bool find_out(const tensile *t, tensile_tensor *tensor, int32_t position, int64_t *out) {
  const planc_buffer *buffer = &t->trace->buffers[tensor->buffer];
  int32_t end = buffer->first_access + buffer->n_accesses;
  for (; tensor->search <= position; tensor->search++) {
    int32_t behind = tensor->search < tensor->first ? 0 : instance_at(t, tensor->search);
    int32_t ahead = tensor->search + 1 < end ? instance_at(t, tensor->search + 1) : t->trace->n_instances;
    if (planc_link_time_earliest(&t->link, t->predicted.start[behind + 1], t->predicted.start[ahead], tensor->out_ns,
                                 out))
      return true;
  }
  return false;
}

/* Plans to have the tensor on the host ahead of the access behind `position`, and gone between `from` and `to`. */
static bool plan_out(const tensile *t, int32_t position, int32_t from, int32_t to, swap *s) {
  s->copies = !s->tensor->on_host;
  int64_t end = s->tensor->host_ns;
  if (s->copies) {
    if (!find_out(t, s->tensor, position, &s->out_start)) return false;
    end = s->out_start + s->tensor->out_ns;
    s->copy = planc_predicted_last(&t->predicted, 1, to, s->out_start) - 1;
  }
  s->leave = planc_predicted_last(&t->predicted, from, to, end - 1);
  return true;
}

static bool plan_in(const tensile *t, const tensile_stretch *stretch, int64_t behind_ns, swap *s) {
  if (!planc_link_time_latest(&t->link, behind_ns, t->predicted.start[stretch->to], stretch->in_ns, &s->in_start))
    return false;
  s->fetch = planc_predicted_last(&t->predicted, 0, stretch->to, s->in_start);
  return true;
}

/* Plans the swap of a stretch within the period; false when there is none and never will be. */
static bool plan_within(const tensile *t, const tensile_stretch *stretch, swap *s) {
  *s = (swap){.tensor = &t->tensors[stretch->tensor], .copy = PLANC_NO_COPY};
  return plan_in(t, stretch, t->predicted.start[stretch->from + 1], s) &&
         plan_out(t, stretch->position, stretch->from, stretch->to - 1, s) && s->fetch > s->leave + 1;
}

/* The same for a stretch that wraps, with a swap-out that ends within the iteration. The swap-in is behind the first
 * op, whose own inputs come first. */
static bool plan_across(const tensile *t, const tensile_stretch *stretch, swap *s) {
  *s = (swap){.tensor = &t->tensors[stretch->tensor], .copy = PLANC_NO_COPY, .leave = stretch->from};
  if (!plan_in(t, stretch, t->predicted.start[1], s)) return false;
  if (s->tensor->version == 0) return true;
  s->copy = s->tensor->copy;
  return plan_out(t, stretch->position, stretch->from, t->trace->n_instances - 1, s);
}

/* The same with a swap-out in the next iteration, where the tensor is version 0. */
static bool plan_next(const tensile *t, const tensile_stretch *stretch, swap *s) {
  tensile_tensor *tensor = &t->tensors[t->first_tensor[t->tensors[stretch->tensor].buffer]];
  *s = (swap){.tensor = tensor, .copy = PLANC_NO_COPY};
  return plan_in(t, stretch, t->predicted.start[1], s) && plan_out(t, tensor->first - 1, 0, stretch->to - 1, s) &&
         s->fetch > s->leave + 1;
}

/* --- Taking it ---------------------------------------------------------------------------------------------------- */

/* Marks a tensor as away at some time; its stretches need not wait for that any more. */
static planc_status release(tensile *t, tensile_tensor *tensor) {
  tensor->released = true;
  for (int32_t k = tensor->first_stretch; k < t->n && t->stretches[k].tensor == tensor - t->tensors; k++) {
    tensile_stretch *stretch = &t->stretches[k];
    if (!stretch->waits) continue;
    stretch->waits = false;
    PLANC_TRY(planc_covers_set(&t->by_size.covers, stretch->place, stretch->relieves));
  }
  return NULL;
}

/* What is away when the iteration ends is away when the next one begins, as version 0, which the host then has. */
static planc_status wrap(tensile *t, const swap *s, int64_t bytes) {
  tensile_tensor *next = &t->tensors[t->first_tensor[s->tensor->buffer]];
  next->on_host = true;
  planc_peaks_add(&t->predicted.peaks, s->leave + 1, t->trace->n_instances - 1, -bytes);
  planc_peaks_add(&t->predicted.peaks, 0, s->fetch - 1, -bytes);
  return release(t, next);
}

/* What the host has to hold once the tensor is swapped: nothing more where it does already, or was fed. */
static int64_t host_bytes_of(const tensile *t, const tensile_tensor *tensor) {
  const planc_buffer *buffer = &t->trace->buffers[tensor->buffer];
  bool was_fed = tensor->version == 0 && (buffer->flags & PLANC_BUFFER_FED);
  return tensor->released || was_fed ? 0 : planc_walk_room(buffer);
}

static planc_status take(tensile *t, tensile_stretch *stretch, const swap *s) {
  tensile_tensor *tensor = s->tensor;
  PLANC_TRY(planc_link_time_take(&t->link, s->in_start, stretch->in_ns));
  t->n_swapped += !tensor->released;
  t->host_bytes = planc_add_saturate(t->host_bytes, host_bytes_of(t, tensor));
  PLANC_TRY(release(t, tensor));
  if (s->copies) {
    PLANC_TRY(planc_link_time_take(&t->link, s->out_start, tensor->out_ns));
    tensor->on_host = true;
    tensor->host_ns = s->out_start + tensor->out_ns;
    tensor->copy = s->copy;
  }
  if (s->fetch <= s->leave) {
    PLANC_TRY(wrap(t, s, stretch->bytes));
  } else {
    planc_peaks_add(&t->predicted.peaks, s->leave + 1, s->fetch - 1, -stretch->bytes);
  }
  stretch->state = TENSILE_TAKEN;
  stretch->in_start = s->in_start;
  stretch->absence = (planc_absence){
      .buffer = tensor->buffer, .version = tensor->version, .copy = s->copy, .leave = s->leave, .fetch = s->fetch};
  return NULL;
}

/* Takes all other stretches of a tensor that need a swap-in alone. */
static planc_status take_rest(tensile *t, const tensile_tensor *tensor) {
  for (int32_t k = tensor->first_stretch; k < t->n && t->stretches[k].tensor == tensor - t->tensors; k++) {
    swap s;
    tensile_stretch *stretch = &t->stretches[k];
    if (!tensor->on_host || stretch->wraps || stretch->state == TENSILE_TAKEN) continue;
    if (plan_within(t, stretch, &s)) PLANC_TRY(take(t, stretch, &s));
  }
  return NULL;
}

static planc_cover relieved(const swap *s) {
  return (planc_cover){s->leave, s->fetch};
}

/* Notes which peaks a stretch could relieve. */
static bool note(tensile_stretch *stretch, const swap *s, int32_t peak) {
  stretch->relieves = relieved(s);
  return planc_cover_is_around(stretch->relieves, peak);
}

/* Plans the swap of a stretch that relieves the peak. */
static bool plan(const tensile *t, tensile_stretch *stretch, int32_t peak, swap *s) {
  bool possible = stretch->wraps ? plan_across(t, stretch, s) : plan_within(t, stretch, s);
  if (possible && note(stretch, s, peak)) return true;
  if (stretch->wraps && plan_next(t, stretch, s))
    return possible ? planc_cover_is_around(relieved(s), peak) : note(stretch, s, peak);
  if (!possible) stretch->state = TENSILE_HOPELESS;
  return false;
}

/* Where a swap across iterations makes the stretch need a swap-in alone: plans that one. False when there is none and
 * never will be. */
static bool plan_parking(const tensile *t, tensile_stretch *stretch, swap *park, swap *in) {
  const tensile_tensor *tensor = &t->tensors[stretch->tensor];
  if (stretch->wraps || tensor->on_host || tensor->across < 0) return false;
  const tensile_stretch *across = &t->stretches[tensor->across];
  *in = (swap){.leave = stretch->from};
  return across->state == TENSILE_OPEN && plan_across(t, across, park) &&
         plan_in(t, stretch, t->predicted.start[stretch->from + 1], in) && in->fetch > in->leave + 1;
}

static planc_status take_swap(tensile *t, tensile_stretch *stretch, int32_t peak, bool *out_taken) {
  swap s, in;
  stretch->waits = !t->tensors[stretch->tensor].released && t->n_swapped >= t->most_swapped;
  if (stretch->waits) return NULL;
  bool parks = plan_parking(t, stretch, &s, &in);
  *out_taken = parks ? note(stretch, &in, peak) : plan(t, stretch, peak, &s);
  if (!*out_taken) return NULL;
  if (host_bytes_of(t, s.tensor) > t->walk->host_room - t->host_bytes) {
    stretch->state = TENSILE_HOPELESS;
    *out_taken = false;
    return NULL;
  }
  if (parks) stretch = &t->stretches[t->tensors[stretch->tensor].across];
  PLANC_TRY(take(t, stretch, &s));
  PLANC_TRY(take_rest(t, s.tensor));
  return stretch->wraps ? take_rest(t, &t->tensors[t->first_tensor[s.tensor->buffer]]) : NULL;
}

planc_status tensile_swap(tensile *t, int32_t peak, bool *out_taken) {
  return tensile_take_first(t, &t->by_size, peak, take_swap, out_taken);
}

/* --- Set-up ------------------------------------------------------------------------------------------------------- */

static int64_t copy_ns(const planc_link *link, int64_t bytes) {
  int64_t ns = planc_link_ns(link, bytes);
  return ns > 0 ? ns : 1;
}

/* When a gradient that other replicas get has been made. */
static int64_t made_ns(const tensile *t, int32_t gradient) {
  return t->predicted.start[planc_writer_of(t->trace, gradient, t->trace->buffers[gradient].sent) + 1];
}

/* Inputs come in ahead of their first access, those of the first instance at the end of the iteration before; results
 * leave behind their last access. Gradients leave for other replicas when they are made, and theirs come in after. */
static planc_status reserve_users(tensile *t) {
  const planc_device *device = &t->walk->costs->device;
  int64_t end = t->predicted.start[t->trace->n_instances], start;
  for (int32_t b = 0; b < t->trace->n_buffers; b++) {
    const planc_buffer *buffer = &t->trace->buffers[b];
    if (buffer->n_accesses == 0) continue;
    if (buffer->flags & PLANC_BUFFER_FED) {
      int64_t ns = planc_fetch_ns(&device->h2d, t->trace, b),
              to = t->predicted.start[instance_at(t, buffer->first_access)];
      int64_t from = buffer->peer < 0 ? 0 : made_ns(t, buffer->peer);
      if (planc_link_time_latest(&t->link, from, to > 0 ? to : end, ns, &start))
        PLANC_TRY(planc_link_time_take(&t->link, start, ns));
    }
    if (buffer->sent >= 0) {
      int64_t ns = copy_ns(&device->d2h, buffer->bytes);
      if (planc_link_time_earliest(&t->link, made_ns(t, b), end, ns, &start))
        PLANC_TRY(planc_link_time_take(&t->link, start, ns));
    }
    if (buffer->flags & PLANC_BUFFER_RESULT) {
      int64_t ns = copy_ns(&device->d2h, buffer->bytes);
      if (planc_link_time_earliest(&t->link, t->predicted.start[planc_last_instance(t->trace, b) + 1], end, ns, &start))
        PLANC_TRY(planc_link_time_take(&t->link, start, ns));
    }
  }
  return NULL;
}

static bool is_there_before(const planc_buffer *buffer) {
  return buffer->flags & (PLANC_BUFFER_PERSISTENT | PLANC_BUFFER_FED);
}

static planc_status find_tensors(tensile *t, planc_arena *arena) {
  const planc_trace *trace = t->trace;
  const planc_device *device = &t->walk->costs->device;
  int32_t n = 0;
  int64_t n_with_content = 0;
  PLANC_TRY(PLANC_NEW(arena, &t->first_tensor, trace->n_buffers));
  for (int32_t b = 0; b < trace->n_buffers; b++) {
    t->first_tensor[b] = n;
    n += trace->buffers[b].last_version + 1;
    n_with_content += trace->buffers[b].last_version + is_there_before(&trace->buffers[b]);
  }
  t->most_swapped = planc_muldiv_floor(n_with_content, t->rate_ppm, MILLION);
  PLANC_TRY(PLANC_NEW(arena, &t->tensors, n));
  for (int32_t b = 0; b < trace->n_buffers; b++) {
    const planc_buffer *buffer = &trace->buffers[b];
    tensile_tensor *tensors = &t->tensors[t->first_tensor[b]];
    for (int32_t v = 0; v <= buffer->last_version; v++) {
      tensors[v] = (tensile_tensor){.buffer = b,
                                    .version = v,
                                    .first = buffer->first_access,
                                    .first_stretch = INT32_MAX,
                                    .across = -1,
                                    .out_ns = copy_ns(&device->d2h, buffer->bytes),
                                    .copy = PLANC_NO_COPY};
    }
    tensors[0].on_host = buffer->flags & PLANC_BUFFER_FED;
    for (int32_t i = buffer->first_access; i < buffer->first_access + buffer->n_accesses; i++) {
      const planc_access *access = &trace->accesses[trace->by_buffer[i]];
      if (access->write >= 0) tensors[access->write].first = i;
      if (access->write >= 0) tensors[access->write].last = i;
      if (access->read >= 0) tensors[access->read].last = i;
    }
    for (int32_t v = 0; v <= buffer->last_version; v++) tensors[v].search = tensors[v].first - (v == 0);
  }
  return NULL;
}

static void add_stretch(tensile *t, int32_t tensor, int32_t position, int32_t to, bool wraps) {
  const planc_buffer *buffer = &t->trace->buffers[t->tensors[tensor].buffer];
  if (t->tensors[tensor].first_stretch == INT32_MAX) t->tensors[tensor].first_stretch = t->n;
  if (wraps) t->tensors[t->first_tensor[t->tensors[tensor].buffer]].across = t->n;
  t->stretches[t->n++] = (tensile_stretch){.tensor = tensor,
                                           .position = position,
                                           .from = instance_at(t, position),
                                           .to = to,
                                           .wraps = wraps,
                                           .relieves = {instance_at(t, position), to},
                                           .bytes = planc_walk_room(buffer),
                                           .in_ns = copy_ns(&t->walk->costs->device.h2d, buffer->bytes)};
}

/* Those of which the second access reads, and of what persists the one that wraps. */
static planc_status find_stretches(tensile *t, planc_arena *arena) {
  const planc_trace *trace = t->trace;
  PLANC_TRY(PLANC_NEW(arena, &t->stretches, trace->n_accesses));
  for (int32_t b = 0; b < trace->n_buffers; b++) {
    const planc_buffer *buffer = &trace->buffers[b];
    int32_t end = buffer->first_access + buffer->n_accesses;
    for (int32_t i = buffer->first_access; i + 1 < end; i++) {
      const planc_access *to = &trace->accesses[trace->by_buffer[i + 1]];
      if (to->read > 0 || (to->read == 0 && is_there_before(buffer)))
        add_stretch(t, t->first_tensor[b] + to->read, i, to->instance, false);
    }
    if (buffer->flags & PLANC_BUFFER_PERSISTENT && buffer->n_accesses > 0)
      add_stretch(t, t->first_tensor[b] + buffer->last_version, end - 1, instance_at(t, buffer->first_access), true);
  }
  return NULL;
}

planc_status tensile_set_up_swaps(tensile *t, planc_arena *arena) {
  tensile_rank *ranks;
  PLANC_TRY(planc_link_time_reset(&t->link));
  PLANC_TRY(reserve_users(t));
  PLANC_TRY(find_tensors(t, arena));
  PLANC_TRY(find_stretches(t, arena));
  PLANC_TRY(PLANC_NEW(arena, &ranks, t->n));
  for (int32_t k = 0; k < t->n; k++) ranks[k] = (tensile_rank){t->stretches[k].bytes, k};
  return tensile_make_list(t, arena, ranks, t->n, &t->by_size);
}
