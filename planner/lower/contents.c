/* Contents of a schedule (contents.h): commands read once, in order. */
#include "planner/lower/contents.h"

typedef struct finding {
  const planc_schedule *schedule;
  const planc_command *commands;
  int32_t n_commands;
  pl_contents *out;
  int32_t *parked_of; /* by buffer: its content at the beginning of the period; -1 = it is not parked */
} finding;

static void add_parked(const finding *f);
static void add_offloads(const finding *f, const bool *read);
static planc_status list_reads(const finding *f, pl_arena *arena);

planc_status pl_contents_find(pl_arena *arena, const planc_schedule *schedule, pl_contents *out) {
  finding f = {.schedule = schedule,
               .commands = planc_schedule_commands(schedule),
               .n_commands = planc_schedule_n_commands(schedule),
               .out = out};
  int32_t n_buffers = planc_schedule_trace(schedule)->n_buffers;
  bool *read; /* by command: a prefetch reads what it offloads */
  *out = (pl_contents){0};
  PLANC_TRY(PL_NEW(arena, &f.parked_of, n_buffers));
  PLANC_TRY(PL_NEW(arena, &read, f.n_commands));
  PLANC_TRY(PL_NEW(arena, &out->of_offload, f.n_commands));
  PLANC_TRY(PL_NEW(arena, &out->all, (int64_t)f.n_commands + planc_schedule_n_parked(schedule)));
  for (int32_t b = 0; b < n_buffers; b++) f.parked_of[b] = -1;
  for (int32_t c = 0; c < f.n_commands; c++) {
    const planc_command *command = &f.commands[c];
    bool reads = command->kind == PLANC_CMD_PREFETCH && !command->user && command->source != PLANC_PARKED;
    if (reads) read[command->source] = true;
  }
  add_parked(&f);
  add_offloads(&f, read);
  return list_reads(&f, arena);
}

static int32_t buffer_of(const finding *f, const planc_command *command) {
  return planc_schedule_residencies(f->schedule)[command->residency].buffer;
}

/* The content that a prefetch reads; -1 = the user's. */
static int32_t content_read(const finding *f, const planc_command *command) {
  if (command->kind != PLANC_CMD_PREFETCH || command->user) return -1;
  if (command->source == PLANC_PARKED) return f->parked_of[buffer_of(f, command)];
  return f->out->of_offload[command->source];
}

static void add(const finding *f, pl_content content) {
  content.twin = f->out->n;
  f->out->all[f->out->n++] = content;
}

static void add_parked(const finding *f) {
  for (int32_t h = 0; h < planc_schedule_n_parked(f->schedule); h++) {
    int32_t buffer = planc_schedule_residencies(f->schedule)[h].buffer;
    bool stays = planc_schedule_parking(f->schedule, buffer) == PLANC_PARKED;
    f->parked_of[buffer] = f->out->n;
    add(f, (pl_content){.buffer = buffer, .written = PL_AT_BOUNDARY, .until = stays ? PL_STAYS : PL_AT_BOUNDARY});
  }
}

/* An offload that nothing reads is none. */
static void add_offloads(const finding *f, const bool *read) {
  for (int32_t c = 0; c < f->n_commands; c++) {
    f->out->of_offload[c] = -1;
    if (f->commands[c].kind != PLANC_CMD_OFFLOAD || f->commands[c].user) continue;
    int32_t buffer = buffer_of(f, &f->commands[c]), parked = f->parked_of[buffer];
    bool parks = parked >= 0 && planc_schedule_parking(f->schedule, buffer) == c;
    if (!parks && !read[c]) continue;
    f->out->of_offload[c] = f->out->n;
    add(f, (pl_content){.buffer = buffer, .written = c, .until = parks ? PL_STAYS : c});
    if (!parks) continue;
    f->out->all[parked].twin = f->out->n - 1;
    f->out->all[f->out->n - 1].twin = parked;
  }
}

static planc_status list_reads(const finding *f, pl_arena *arena) {
  pl_contents *out = f->out;
  int32_t n = 0;
  PLANC_TRY(PL_NEW(arena, &out->reads, f->n_commands));
  for (int32_t c = 0; c < f->n_commands; c++) {
    int32_t content = content_read(f, &f->commands[c]);
    if (content >= 0) out->all[content].n_reads++;
  }
  for (int32_t k = 0; k < out->n; k++) {
    out->all[k].first_read = n;
    n += out->all[k].n_reads;
    out->all[k].n_reads = 0;
  }
  for (int32_t c = 0; c < f->n_commands; c++) {
    int32_t k = content_read(f, &f->commands[c]);
    if (k < 0) continue;
    pl_content *content = &out->all[k];
    out->reads[content->first_read + content->n_reads++] = (pl_read){.command = c, .load = c};
    if (content->until != PL_STAYS) content->until = c;
  }
  return NULL;
}
