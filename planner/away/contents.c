/* Contents of a schedule (contents.h): commands read once, in order. */
#include "planner/away/contents.h"

typedef struct finding {
  const planc_schedule *schedule;
  const planc_command *commands;
  int32_t n_commands;
  pl_contents *out;
  int32_t *of_residency; /* the content that is in it; -1 = none */
  int32_t *takes_over;   /* by residency: that which is parked in its place when the period starts; -1 = none */
} finding;

static void add_parked(const finding *f);
static void add_written(const finding *f, const bool *read);
static planc_status list_reads(const finding *f, pl_arena *arena);
static bool reads(const finding *f, int32_t c);

planc_status pl_contents_find(pl_arena *arena, const planc_schedule *schedule, pl_contents *out) {
  finding f = {.schedule = schedule,
               .commands = planc_schedule_commands(schedule),
               .n_commands = planc_schedule_n_commands(schedule),
               .out = out};
  int32_t n_residencies = planc_schedule_n_residencies(schedule);
  bool *read; /* by residency */
  *out = (pl_contents){0};
  PLANC_TRY(PL_NEW(arena, &f.of_residency, n_residencies));
  PLANC_TRY(PL_NEW(arena, &f.takes_over, n_residencies));
  PLANC_TRY(PL_NEW(arena, &read, n_residencies));
  PLANC_TRY(PL_NEW(arena, &out->of_command, f.n_commands));
  PLANC_TRY(PL_NEW(arena, &out->all, (int64_t)f.n_commands + planc_schedule_n_parked(schedule)));
  for (int32_t r = 0; r < n_residencies; r++) f.of_residency[r] = f.takes_over[r] = -1;
  for (int32_t c = 0; c < f.n_commands; c++)
    if (reads(&f, c)) read[f.commands[c].source] = true;
  add_parked(&f);
  add_written(&f, read);
  return list_reads(&f, arena);
}

static bool reads(const finding *f, int32_t c) {
  return planc_schedule_copies(f->schedule, &f->commands[c], PLANC_MEMORY_HOST, PLANC_MEMORY_DEVICE);
}

static void add(const finding *f, pl_content content) {
  content.twin = f->out->n;
  content.memory = PL_TIER_HOST;
  f->out->all[f->out->n++] = content;
}

static void add_parked(const finding *f) {
  for (int32_t h = 0; h < planc_schedule_n_parked(f->schedule); h++) {
    int32_t buffer = planc_schedule_residencies(f->schedule)[h].buffer;
    int32_t last = planc_schedule_parking(f->schedule, buffer);
    bool stays = last == h;
    f->of_residency[h] = f->out->n;
    if (!stays) f->takes_over[last] = h;
    add(f, (pl_content){.buffer = buffer, .written = PL_AT_BOUNDARY, .until = stays ? PL_STAYS : PL_AT_BOUNDARY});
  }
}

/* What nothing reads is no content. */
static void add_written(const finding *f, const bool *read) {
  for (int32_t c = 0; c < f->n_commands; c++) {
    const planc_command *command = &f->commands[c];
    f->out->of_command[c] = -1;
    if (!planc_schedule_copies(f->schedule, command, PLANC_MEMORY_DEVICE, PLANC_MEMORY_HOST)) continue;
    int32_t parked = f->takes_over[command->residency];
    bool parks = parked >= 0;
    if (!parks && !read[command->residency]) continue;
    f->out->of_command[c] = f->of_residency[command->residency] = f->out->n;
    add(f, (pl_content){
               .buffer = planc_schedule_buffer(f->schedule, command), .written = c, .until = parks ? PL_STAYS : c});
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
    if (!reads(f, c)) continue;
    out->of_command[c] = f->of_residency[f->commands[c].source];
    out->all[out->of_command[c]].n_reads++;
  }
  for (int32_t k = 0; k < out->n; k++) {
    out->all[k].first_read = n;
    n += out->all[k].n_reads;
    out->all[k].n_reads = 0;
  }
  for (int32_t c = 0; c < f->n_commands; c++) {
    if (!reads(f, c)) continue;
    pl_content *content = &out->all[out->of_command[c]];
    out->reads[content->first_read + content->n_reads++] = (pl_read){.command = c, .load = c};
    if (content->until != PL_STAYS) content->until = c;
  }
  return NULL;
}

int32_t pl_content_stay(const pl_contents *contents, const pl_content *content, int32_t read) {
  const pl_read *reads_of = &contents->reads[content->first_read];
  int32_t last = read < 0 ? content->written : reads_of[read].command;
  for (int32_t r = read + 1; r < content->n_reads && !reads_of[r].loaded; r++) last = reads_of[r].command;
  return last;
}
