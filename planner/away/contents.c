/* Contents of a schedule (contents.h): commands read once, in order. */
#include "planner/away/contents.h"

typedef struct finding {
  const planc_schedule *schedule;
  const planc_command *commands;
  int32_t n_commands;
  pl_contents *out;
  int32_t *of_residency; /* the content that is in it; -1 = none */
  int32_t *takes_over;   /* by residency: that of the boundary whose place it takes; -1 = none */
  bool *needed;          /* by residency away: it ends the period there, or something is copied from it */
} finding;

static void add_boundary(const finding *f);
static void find_needed(const finding *f);
static void add_written(const finding *f);
static planc_status list_reads(const finding *f, pl_arena *arena);
static planc_status find_uses(const finding *f, pl_arena *arena);

planc_status pl_contents_find(pl_arena *arena, const planc_schedule *schedule, pl_contents *out) {
  finding f = {.schedule = schedule,
               .commands = planc_schedule_commands(schedule),
               .n_commands = planc_schedule_n_commands(schedule),
               .out = out};
  int32_t n_residencies = planc_schedule_n_residencies(schedule);
  *out = (pl_contents){0};
  PLANC_TRY(PL_NEW(arena, &f.of_residency, n_residencies));
  PLANC_TRY(PL_NEW(arena, &f.takes_over, n_residencies));
  PLANC_TRY(PL_NEW(arena, &f.needed, n_residencies));
  PLANC_TRY(PL_NEW(arena, &out->of_command, f.n_commands));
  PLANC_TRY(PL_NEW(arena, &out->all, (int64_t)f.n_commands + planc_schedule_n_away(schedule)));
  for (int32_t r = 0; r < n_residencies; r++) f.of_residency[r] = f.takes_over[r] = -1;
  add_boundary(&f);
  find_needed(&f);
  add_written(&f);
  return list_reads(&f, arena);
}

static void add(const finding *f, int32_t residency, pl_content content) {
  content.twin = f->out->n;
  content.in_use = content.until;
  content.buffer = planc_schedule_residencies(f->schedule)[residency].buffer;
  content.memory = content.lies_in = planc_schedule_residencies(f->schedule)[residency].memory;
  f->of_residency[residency] = f->out->n;
  f->out->all[f->out->n++] = content;
}

static void add_boundary(const finding *f) {
  for (int32_t h = 0; h < planc_schedule_n_away(f->schedule); h++) {
    int32_t buffer = planc_schedule_residencies(f->schedule)[h].buffer;
    int32_t last = planc_schedule_away_at_end(f->schedule, buffer);
    bool stays = last == h;
    if (!stays) f->takes_over[last] = h;
    add(f, h, (pl_content){.written = PL_AT_BOUNDARY, .until = stays ? PL_STAYS : PL_AT_BOUNDARY});
  }
}

static bool writes_away(const finding *f, int32_t c) {
  return f->commands[c].kind == PLANC_CMD_COPY && planc_schedule_is_away(f->schedule, f->commands[c].residency);
}

static bool reads_away(const finding *f, int32_t c) {
  return f->commands[c].kind == PLANC_CMD_COPY && planc_schedule_is_away(f->schedule, f->commands[c].source);
}

/* From the last command to the first: a copy that is not needed needs nothing. */
static void find_needed(const finding *f) {
  for (int32_t c = f->n_commands - 1; c >= 0; c--) {
    const planc_command *command = &f->commands[c];
    if (writes_away(f, c) && f->takes_over[command->residency] >= 0) f->needed[command->residency] = true;
    if (reads_away(f, c) && (!writes_away(f, c) || f->needed[command->residency])) f->needed[command->source] = true;
  }
}

/* What is not needed is no content. */
static void add_written(const finding *f) {
  for (int32_t c = 0; c < f->n_commands; c++) {
    const planc_command *command = &f->commands[c];
    f->out->of_command[c] = (pl_sides){PL_NO_SIDE, PL_NO_SIDE};
    if (!writes_away(f, c) || !f->needed[command->residency]) continue;
    int32_t first = f->takes_over[command->residency];
    bool stays = first >= 0;
    f->out->of_command[c].target = f->out->n;
    add(f, command->residency, (pl_content){.written = c, .until = stays ? PL_STAYS : c});
    if (!stays) continue;
    f->out->all[first].twin = f->out->n - 1;
    f->out->all[f->out->n - 1].twin = first;
  }
}

static planc_status list_reads(const finding *f, pl_arena *arena) {
  pl_contents *out = f->out;
  int32_t n = 0;
  PLANC_TRY(PL_NEW(arena, &out->reads, f->n_commands));
  for (int32_t c = 0; c < f->n_commands; c++) {
    bool is_left_out = writes_away(f, c) && !f->needed[f->commands[c].residency];
    if (!reads_away(f, c) || is_left_out) continue;
    out->of_command[c].source = f->of_residency[f->commands[c].source];
    out->all[out->of_command[c].source].n_reads++;
  }
  for (int32_t k = 0; k < out->n; k++) {
    out->all[k].first_read = n;
    n += out->all[k].n_reads;
    out->all[k].n_reads = 0;
  }
  for (int32_t c = 0; c < f->n_commands; c++) {
    if (out->of_command[c].source == PL_NO_SIDE) continue;
    pl_content *content = &out->all[out->of_command[c].source];
    out->reads[content->first_read + content->n_reads++] = (pl_read){.command = c, .load = c};
    if (content->until != PL_STAYS) content->until = content->in_use = c;
  }
  return find_uses(f, arena);
}

/* Of what several copies read the last one counts, behind which the place is free. */
static planc_status find_uses(const finding *f, pl_arena *arena) {
  const int32_t *uses = planc_schedule_uses(f->schedule);
  int32_t *content_of; /* by residency of the device: what was copied to it, and no exec has used; -1 = nothing */
  PLANC_TRY(PL_NEW(arena, &content_of, planc_schedule_n_residencies(f->schedule)));
  for (int32_t r = 0; r < planc_schedule_n_residencies(f->schedule); r++) content_of[r] = -1;
  for (int32_t c = 0; c < f->n_commands; c++) {
    const planc_command *command = &f->commands[c];
    if (reads_away(f, c) && !writes_away(f, c)) content_of[command->residency] = f->out->of_command[c].source;
    if (command->kind != PLANC_CMD_EXEC) continue;
    const planc_instance *in = &planc_schedule_trace(f->schedule)->instances[command->instance];
    for (int32_t k = 0; k < in->n_accesses; k++) {
      int32_t residency = uses[command->first_use + k], content = residency < 0 ? -1 : content_of[residency];
      if (content < 0) continue;
      pl_content *of = &f->out->all[content];
      if (of->until != PL_STAYS && of->until != PL_AT_BOUNDARY && c > of->until) of->in_use = c;
      content_of[residency] = -1;
    }
  }
  return NULL;
}

int32_t pl_content_stay(const pl_contents *contents, const pl_content *content, int32_t read) {
  const pl_read *reads_of = &contents->reads[content->first_read];
  int32_t last = read < 0 ? content->written : reads_of[read].command;
  for (int32_t r = read + 1; r < content->n_reads && !reads_of[r].loaded; r++) last = reads_of[r].command;
  return last;
}
