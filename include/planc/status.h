/* Statuses: how every planc function reports failure.
 *
 * A status is NULL when all is well; otherwise it owns a code and a message that grows by context on its way up
 * ("graphs/x.yaml:41:7: op conv3: tensor t7 is never produced"). The library never prints, exits or aborts
 * (builds for tests have assertions, what is installed has none): whoever receives a status either returns it (with
 * more context) or frees it. Nor does it look at the program's locale: what it reads and writes is the same under any.
 *
 * Threads: there is no state but in objects. What is only read, any number of threads may use at once; what one changes
 * or frees, no other uses meanwhile.
 *
 * Growth: a program is compiled again for each version of the library. Structs that a caller fills may get further
 * fields, in which 0 means what there was before: fill them by initializers that name fields. (Budgets are arrays by
 * kind of memory, in which 0 is a budget of nothing: a further kind is one more of them.) Enums and tables may get
 * further entries behind those they have, kinds of memory ahead of the user's, which stays the last. Files have names
 * and no numbers of these. */
#ifndef PLANC_STATUS_H
#define PLANC_STATUS_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* X(name, exit code of the programs, text) */
#define PLANC_CODES(X)                                            \
  X(OK, 0, "ok")                                                  \
  X(INFEASIBLE, 1, "does not fit the budget")                     \
  X(LATE, 1, "a deadline or a least share is not met")            \
  X(INVALID_PLAN, 1, "the plan is not valid")                     \
  X(USAGE, 2, "wrong use of the command line")                    \
  X(BAD_INPUT, 3, "an input file is malformed or cannot be read") \
  X(STALE, 4, "the plan was made from another graph or profile")  \
  X(INTERNAL, 5, "a defect in planc")                             \
  X(OUT_OF_MEMORY, 5, "out of memory")                            \
  X(IO, 5, "an output cannot be written")                         \
  X(DEVICE, 6, "the device failed or is missing")                 \
  X(UNCHANGED, 7, "nothing has changed enough to be written")     \
  X(JOB_FAILED, 8, "a job cannot go on")                          \
  X(INTERRUPTED, 130, "interrupted")

typedef enum planc_code {
#define X(name, exit_code, text) PLANC_##name,
  PLANC_CODES(X)
#undef X
} planc_code;

typedef struct planc_status_object *planc_status;

/* A new status. Never NULL: when memory is short it is a shared out-of-memory status. */
planc_status planc_error(planc_code code, const char *format, ...)
    __attribute__((format(printf, 2, 3), returns_nonnull));
/* Puts "context: " before the message of `status` and returns it; NULL stays NULL. Takes ownership of `status`. */
planc_status planc_context(planc_status status, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Kinds of memory, ascending by their distance from the GPU, with their names in plans. Code relies on the order: the
 * larger of two kinds is the farther one. */
#define PLANC_MEMORY_KINDS(X) X(DEVICE, "device") X(HOST, "host") X(STORAGE, "storage") X(USER, "user")
typedef enum planc_memory_kind {
#define X(id, name) PLANC_MEMORY_##id,
  PLANC_MEMORY_KINDS(X)
#undef X
      PLANC_N_MEMORY_KINDS
} planc_memory_kind;
/* Kinds that may have a budget: all but the user's, which is the last. */
enum { PLANC_N_BUDGETS = PLANC_MEMORY_USER };

/* What an INFEASIBLE status knows of what is missing. */
typedef struct planc_shortage {
  planc_memory_kind memory; /* whose budget is too small */
  int64_t bytes;            /* the budget to try next: what was made needs so many, or no less will do; 0 = not known */
} planc_shortage;
/* A new INFEASIBLE status that knows it. */
planc_status planc_infeasible(planc_shortage shortage, const char *format, ...)
    __attribute__((format(printf, 2, 3), returns_nonnull));
/* For a status that is not INFEASIBLE: memory DEVICE, bytes 0. Contexts leave it as it is. */
planc_shortage planc_status_shortage(planc_status status);

/* What may be asked for, or allowed, so that a refusal goes away: messages do not say how, for that is a matter of who
 * asks (a field, an argument, an option). */
typedef enum planc_remedy {
  PLANC_REMEDY_NONE,
  PLANC_REMEDY_INFERENCE,        /* take a graph as it stands */
  PLANC_REMEDY_SPLIT_BATCH_NORM, /* run a batch-coupled graph in parts */
  PLANC_REMEDY_SYNTHETIC,        /* run stand-ins for ops */
  PLANC_REMEDY_STORAGE,          /* name a directory for storage */
  PLANC_REMEDY_DEADLINES         /* give jobs deadlines */
} planc_remedy;
/* A new status that knows it. */
planc_status planc_refusal(planc_code code, planc_remedy remedy, const char *format, ...)
    __attribute__((format(printf, 3, 4), returns_nonnull));
/* Contexts leave it as it is. */
planc_remedy planc_status_remedy(planc_status status);

planc_code planc_status_code(planc_status status);
/* The message, owned by the status; "ok" for NULL. */
const char *planc_status_message(planc_status status);
/* What a program that failed with `code` exits with. */
int planc_exit_code(planc_code code);
void planc_status_free(planc_status status);

/* Returns from the calling function when `expression` failed. */
#define PLANC_TRY(expression)                      \
  do {                                             \
    planc_status planc_try_status = (expression);  \
    if (planc_try_status) return planc_try_status; \
  } while (0)

#ifdef __cplusplus
}
#endif

#endif
