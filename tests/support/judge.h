/* The checker's verdict on a plan, and small edits of scripts, for tests. */
#ifndef PLANC_TESTS_JUDGE_H
#define PLANC_TESTS_JUDGE_H

#include "planc/check.h"

/* The graph of a YAML text, which must be right. */
planc_graph *judge_graph(const char *text);
/* The text with the first `find` in it replaced; freed by the caller. */
char *judge_edited(const char *text, const char *find, const char *replace);
/* The plan of a script (script.h) for one round of two samples; freed by the caller. */
planc_plan *judge_plan(const planc_graph *graph, const char *script, int64_t arena, int64_t host);
/* Checks the plan from memory and, where it has a file's form, from its text: the answer must be the same, have `code`
 * and contain `message`, and the line that it names must be that of the instruction. */
void judge_expect(const planc_plan *plan, planc_code code, const char *message, const char *what);

#endif
