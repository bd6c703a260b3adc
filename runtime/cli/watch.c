/* Watching a file for plans (watch.h): a writer puts a new one in place by renaming it. */
#include "runtime/cli/watch.h"

#include <string.h>

static void look_at(run_watch *watch, struct stat *out);

planc_status run_watch_start(run_watch *watch, const char *path) {
  watch->path = path;
  watch->was_there = false;
  look_at(watch, &watch->seen);
  if (!S_ISDIR(watch->seen.st_mode)) return NULL;
  return planc_error(PLANC_USAGE, "%s is a directory: watch a file in it, which need not be there yet", path);
}

static bool is_same_file(const struct stat *a, const struct stat *b) {
  return a->st_dev == b->st_dev && a->st_ino == b->st_ino && a->st_size == b->st_size &&
         a->st_mtim.tv_sec == b->st_mtim.tv_sec && a->st_mtim.tv_nsec == b->st_mtim.tv_nsec;
}

/* What there is under the path now; all zero where there is nothing. */
static void look_at(run_watch *watch, struct stat *out) {
  if (stat(watch->path, out) != 0) memset(out, 0, sizeof *out);
  watch->was_there |= S_ISREG(out->st_mode);
}

static planc_status is_adoptable(const planrt_session *session, const planc_plan *runs, const planc_plan *plan,
                                 bool *out) {
  uint64_t own, other;
  PLANC_TRY(planc_plan_hash(runs, &own));
  PLANC_TRY(planc_plan_hash(plan, &other));
  *out = own != other;
  return *out ? planrt_can_adopt(session, plan, NULL) : NULL;
}

planc_status run_watch_look(run_watch *watch, const planrt_session *session, const planc_plan *runs, planc_plan **out) {
  struct stat now;
  planc_plan *plan;
  bool adoptable = false;
  *out = NULL;
  look_at(watch, &now);
  if (is_same_file(&now, &watch->seen)) return NULL;
  watch->seen = now;
  if (now.st_mode == 0) return NULL;
  /* Only files can be read without waiting. */
  if (!S_ISREG(now.st_mode)) return planc_error(PLANC_BAD_INPUT, "%s: not a file", watch->path);
  PLANC_TRY(planc_plan_read(watch->path, &plan));
  planc_status status = planc_context(is_adoptable(session, runs, plan, &adoptable), "%s", watch->path);
  if (!status && adoptable) {
    *out = plan;
  } else {
    planc_plan_free(plan);
  }
  return status;
}
