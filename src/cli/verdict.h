/* What `planc check` found, and the forms in which it tells it. */
#ifndef CLI_VERDICT_H
#define CLI_VERDICT_H

#include <cjson/cJSON.h>

#include "planc/check.h"

/* One plan held against one budget. */
typedef struct cli_verdict {
  const char *path;
  const char *budget;   /* as the user wrote it; NULL: the plan's own */
  int64_t budget_bytes; /* -1: the plan's own, and the plan cannot be read */
  planc_status refusal; /* why it does not pass, or NULL; owned */
  /* Where it passes: */
  planc_check_report report;
  char *summary; /* a line for people; owned */
  cJSON *jobs;   /* of a plan with several, each; else NULL; owned */
} cli_verdict;

/* Forms to print verdicts in:
 *   text    a line for each plan that passes
 *   json    an object on one line for each verdict, planc(1)
 *   github  text, and for the others workflow commands that GitHub Actions shows beside the file
 *   junit   JUnit's XML: a suite for each plan, in it a test case for each budget */
#define CLI_VERDICT_FORMS(X) X(text) X(json) X(github) X(junit)
typedef enum cli_verdict_form {
#define X(name) CLI_VERDICT_##name,
  CLI_VERDICT_FORMS(X)
#undef X
} cli_verdict_form;

/* The form called `name`; USAGE when there is none. */
planc_status cli_verdict_form_parse(const char *name, cli_verdict_form *out);
/* Prints on standard output. Verdicts of a plan stand together. */
planc_status cli_verdicts_print(cli_verdict_form form, const cli_verdict *verdicts, int32_t n);

#endif
