/* Reports of what a plan was made for: budgets beside the device's, links, and what policies were asked. */
#include "cli/cli.h"
#include "util/size.h"

typedef enum setting_kind { KIND_bytes, KIND_count, KIND_share, KIND_flag, KIND_level } setting_kind;

static int64_t budget_of(const planc_plan *plan, planc_memory_kind kind);
static const char *name_memory(const planc_plan *plan, int32_t memory, char text[PL_SIZE_TEXT]);

/* --- For people --------------------------------------------------------------------------------------------------- */

static void print_memory(const planc_plan *plan, planc_memory_kind kind, const char *name) {
  char text[PL_SIZE_TEXT];
  int64_t budget = budget_of(plan, kind);
  printf("; %s %s", name, pl_size_format(plan->predicted.peak_bytes[kind], text));
  if (budget >= 0) printf(" of %s", pl_size_format(budget, text));
}

void cli_print_away(const planc_plan *plan) {
  print_memory(plan, PLANC_MEMORY_HOST, "host");
  if (planc_plan_memory(plan, PLANC_MEMORY_STORAGE)->kind == PLANC_MEMORY_STORAGE)
    print_memory(plan, PLANC_MEMORY_STORAGE, "storage");
}

/* Those of the user's memory are the same engines'. */
void cli_print_links(const planc_plan *plan) {
  char from[PL_SIZE_TEXT], to[PL_SIZE_TEXT], latency[PL_SIZE_TEXT];
  const char *separator = "links ";
  for (int32_t l = 0; l < plan->n_links; l++) {
    const planc_plan_link *link = &plan->links[l];
    if (plan->memories[link->from].kind == PLANC_MEMORY_USER || plan->memories[link->to].kind == PLANC_MEMORY_USER)
      continue;
    printf("%s%s to %s %.3f GB/s + %s", separator, name_memory(plan, link->from, from), name_memory(plan, link->to, to),
           (double)link->cost.bytes_per_second / 1e9, pl_time_format(link->cost.latency_ns, latency));
    separator = ", ";
  }
  if (*separator == ',') printf("\n");
}

static void print_setting(const char *before, const char *option, setting_kind kind, int64_t value) {
  char text[PL_SIZE_TEXT];
  printf("%s%s", before, option);
  if (kind == KIND_bytes) printf(" %s", pl_size_format(value, text));
  if (kind == KIND_level) printf(" %lld", (long long)value - 1);
  if (kind == KIND_count) printf(" %lld", (long long)value);
  if (kind == KIND_share) printf(" %g %%", (double)value / PLANC_UNIT_PERCENT);
}

void cli_print_settings(const planc_plan *plan) {
  const char *before = "asked for ";
#define X(name, option, kind, least, most, standard, users, help)    \
  if (plan->settings.name > 0) {                                     \
    print_setting(before, option, KIND_##kind, plan->settings.name); \
    before = ", ";                                                   \
  }
  PLANC_SETTINGS(X)
#undef X
  if (*before == ',') printf("\n");
}

void cli_print_own_settings(const planc_job *job) {
#define X(name, option, kind, least, most, standard, users, help) \
  if (job->name > 0) print_setting(", ", option, KIND_##kind, job->name);
  PLANC_EACH_SETTINGS(X)
#undef X
}

static int64_t budget_of(const planc_plan *plan, planc_memory_kind kind) {
  const planc_memory *memory = planc_plan_memory(plan, kind);
  return memory->kind == kind ? memory->budget_bytes : -1;
}

static const char *name_memory(const planc_plan *plan, int32_t memory, char text[PL_SIZE_TEXT]) {
#define X(id, name) name,
  static const char *const names[] = {PLANC_MEMORY_KINDS(X)};
#undef X
  planc_memory_kind kind = plan->memories[memory].kind;
  if (kind != PLANC_MEMORY_DEVICE || planc_plan_gpus(plan) == 1) return names[kind];
  snprintf(text, PL_SIZE_TEXT, "device %d", memory);
  return text;
}

/* --- As JSON ------------------------------------------------------------------------------------------------------ */

static void report_budget(const planc_plan *plan, planc_memory_kind kind, const char *key, cJSON *object) {
  int64_t budget = budget_of(plan, kind);
  pl_json_add_known(object, key, budget >= 0, budget);
}

void cli_report_terms(const planc_plan *plan, cJSON *object) {
  char from[PL_SIZE_TEXT], to[PL_SIZE_TEXT];
  report_budget(plan, PLANC_MEMORY_HOST, "host_budget_bytes", object);
  report_budget(plan, PLANC_MEMORY_STORAGE, "storage_budget_bytes", object);
  cJSON *links = pl_json_add_array(object, "links");
  for (int32_t l = 0; l < plan->n_links; l++) {
    const planc_plan_link *link = &plan->links[l];
    cJSON *row = pl_json_add_object(links, NULL);
    pl_json_add_string(row, "from", name_memory(plan, link->from, from));
    pl_json_add_string(row, "to", name_memory(plan, link->to, to));
    pl_json_add_int(row, "engine", link->engine);
    pl_json_add_int(row, "bytes_per_second", link->cost.bytes_per_second);
    pl_json_add_int(row, "latency_ns", link->cost.latency_ns);
  }
  cJSON *settings = pl_json_add_object(object, "settings");
#define X(name, option, kind, least, most, standard, users, help) \
  if (plan->settings.name > 0) pl_json_add_int(settings, #name, plan->settings.name);
  PLANC_SETTINGS(X)
#undef X
}
