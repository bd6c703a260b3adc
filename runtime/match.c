/* Finds jobs again (match.h). Nothing is guessed: where a job could be one or another, none is taken, and matching
 * fails. */
#include "runtime/match.h"

#include <string.h>

#include "util/arena.h"

typedef struct matching {
  const rt_identity *known, *jobs;
  int32_t n_known, n_jobs;
  bool resumes;
  int32_t *out;
  bool *taken;       /* by known job: a job of the plan is this one */
  int32_t *class_of; /* by known job, then by the plan's: equal content, batch and replicas */
  int32_t *first;    /* by class: the first job in it, in the same numbering */
  int32_t n_classes;
} matching;

static planc_status match(matching *m);
static planc_status find_classes(matching *m);
static planc_status match_name(matching *m, int32_t job);
static planc_status match_class(matching *m, int32_t which);
static planc_status check_joins(const matching *m, int32_t job);
static bool is_any_known(const matching *m);
static planc_status tell(const matching *m, int32_t known, int32_t job);

planc_status rt_match(const rt_identity *known, int32_t n_known, const rt_identity *jobs, int32_t n_jobs, bool resumes,
                      int32_t *out) {
  pl_arena memory = {0};
  int64_t n = (int64_t)n_known + n_jobs;
  matching m = {.known = known, .jobs = jobs, .n_known = n_known, .n_jobs = n_jobs, .resumes = resumes, .out = out};
  planc_status status = PL_NEW(&memory, &m.taken, n_known);
  if (!status) status = PL_NEW(&memory, &m.class_of, n);
  if (!status) status = PL_NEW(&memory, &m.first, n);
  if (!status) status = match(&m);
  pl_arena_free(&memory);
  return status;
}

static planc_status match(matching *m) {
  PLANC_TRY(find_classes(m));
  for (int32_t j = 0; j < m->n_jobs; j++) PLANC_TRY(match_name(m, j));
  for (int32_t c = 0; c < m->n_classes; c++) PLANC_TRY(match_class(m, c));
  for (int32_t j = 0; j < m->n_jobs; j++) PLANC_TRY(check_joins(m, j));
  if (is_any_known(m)) return NULL;
  return planc_error(PLANC_STALE, "made from another graph than the run's");
}

/* --- Classes ------------------------------------------------------------------------------------------------------ */

/* One of the known jobs or, behind them, of the plan's. */
static const rt_identity *at(const matching *m, int32_t i) {
  return i < m->n_known ? &m->known[i] : &m->jobs[i - m->n_known];
}

static bool is_alike(const rt_identity *a, const rt_identity *b) {
  return a->split.replicas == b->split.replicas && a->split.batch == b->split.batch &&
         strcmp(a->content, b->content) == 0;
}

static planc_status find_classes(matching *m) {
  for (int32_t i = 0; i < m->n_known + m->n_jobs; i++) {
    int32_t c = 0;
    while (c < m->n_classes && !is_alike(at(m, m->first[c]), at(m, i))) c++;
    if (c == m->n_classes) m->first[m->n_classes++] = i;
    m->class_of[i] = c;
  }
  return NULL;
}

static int32_t class_of_job(const matching *m, int32_t job) {
  return m->class_of[m->n_known + job];
}

/* --- By name ------------------------------------------------------------------------------------------------------ */

static void take(matching *m, int32_t known, int32_t job) {
  m->taken[known] = true;
  m->out[job] = known;
}

/* In a plan, as in a training, a name is one job's. */
static planc_status match_name(matching *m, int32_t job) {
  m->out[job] = RT_JOINS;
  for (int32_t k = 0; k < m->n_known && m->jobs[job].name; k++) {
    if (!m->known[k].name || m->taken[k] || strcmp(m->known[k].name, m->jobs[job].name) != 0) continue;
    if (m->class_of[k] != class_of_job(m, job)) return tell(m, k, job);
    take(m, k, job);
  }
  return NULL;
}

/* --- By content --------------------------------------------------------------------------------------------------- */

/* Jobs of a class that are still unmatched and may be matched by content. Two jobs that both have names, and not the
 * same, are two jobs: so where all of one side have names, only the other side's jobs without names count. */
typedef struct unmatched {
  int32_t which;
  int32_t known, jobs;             /* how many */
  int32_t named_known, named_jobs; /* of these */
  bool only_unnamed_known, only_unnamed_jobs;
} unmatched;

static void count(const matching *m, unmatched *of);
static int32_t next_known(const matching *m, const unmatched *of, int32_t from);
static int32_t next_job(const matching *m, const unmatched *of, int32_t from);

/* Matches in order where both sides have equally many, unless both have some with names. */
static planc_status match_class(matching *m, int32_t which) {
  unmatched of = {.which = which};
  count(m, &of);
  of.only_unnamed_known = of.named_jobs == of.jobs;
  of.only_unnamed_jobs = of.named_known == of.known;
  count(m, &of);
  if (of.known == 0 || of.jobs == 0) return NULL;
  int32_t j = next_job(m, &of, 0);
  if (of.known != of.jobs || (of.named_known > 0 && of.named_jobs > 0))
    return planc_error(PLANC_STALE,
                       "%d of its jobs train %s alike, of the run's %d: only names tell which is which, planc colocate "
                       "NAME=GRAPH",
                       m->resumes ? of.known : of.jobs, m->jobs[j].graph, m->resumes ? of.jobs : of.known);
  for (int32_t k = next_known(m, &of, 0); k < m->n_known; k = next_known(m, &of, k + 1)) {
    take(m, k, j);
    j = next_job(m, &of, j + 1);
  }
  return NULL;
}

static void count(const matching *m, unmatched *of) {
  of->known = of->jobs = of->named_known = of->named_jobs = 0;
  for (int32_t k = next_known(m, of, 0); k < m->n_known; k = next_known(m, of, k + 1)) {
    of->known++;
    of->named_known += m->known[k].name != NULL;
  }
  for (int32_t j = next_job(m, of, 0); j < m->n_jobs; j = next_job(m, of, j + 1)) {
    of->jobs++;
    of->named_jobs += m->jobs[j].name != NULL;
  }
}

/* The next unmatched job from `from` on, of the known jobs or of the plan's; n_known or n_jobs where there is none. */
static int32_t next_known(const matching *m, const unmatched *of, int32_t from) {
  while (from < m->n_known &&
         (m->taken[from] || m->class_of[from] != of->which || (of->only_unnamed_known && m->known[from].name)))
    from++;
  return from;
}

static int32_t next_job(const matching *m, const unmatched *of, int32_t from) {
  while (from < m->n_jobs && (m->out[from] != RT_JOINS || class_of_job(m, from) != of->which ||
                              (of->only_unnamed_jobs && m->jobs[from].name)))
    from++;
  return from;
}

/* --- What joins --------------------------------------------------------------------------------------------------- */

/* If a job joins while a known one of the same graph name is missing, it is taken for that one with changes, and
 * refused, unless names tell them apart. */
static planc_status check_joins(const matching *m, int32_t job) {
  const rt_identity *joins = &m->jobs[job];
  for (int32_t k = 0; k < m->n_known && m->out[job] == RT_JOINS; k++) {
    const rt_identity *known = &m->known[k];
    bool named = joins->name && known->name;
    if (!m->taken[k] && !named && strcmp(joins->graph, known->graph) == 0) return tell(m, k, job);
  }
  return NULL;
}

static bool is_any_known(const matching *m) {
  for (int32_t j = 0; j < m->n_jobs; j++)
    if (m->out[j] != RT_JOINS) return true;
  return false;
}

/* Tells how a job differs from the one that it should be. Where the graphs differ, the numbers mean nothing and are not
 * told. */
static planc_status tell(const matching *m, int32_t known, int32_t job) {
  const rt_identity *run = m->resumes ? &m->jobs[job] : &m->known[known];
  const rt_identity *other = m->resumes ? &m->known[known] : &m->jobs[job];
  const char *name = m->jobs[job].name ? m->jobs[job].name : m->jobs[job].graph;
  planc_status status = strcmp(run->content, other->content) == 0 ? rt_split_tell(&run->split, &other->split) : NULL;
  if (!status) status = planc_error(PLANC_STALE, "made from another graph than the run's");
  return m->n_known == 1 && m->n_jobs == 1 ? status : planc_context(status, "job %s", name);
}
