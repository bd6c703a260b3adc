#include "tests/support/judge.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/script.h"
#include "tests/support/unit.h"

planc_graph *judge_graph(const char *text) {
  planc_graph *graph;
  planc_status status = planc_graph_parse(text, strlen(text), "tiny.yaml", &graph);
  ck_assert_msg(!status, "%s", planc_status_message(status));
  return graph;
}

planc_plan *judge_plan(const planc_graph *graph, const char *script, int64_t arena, int64_t host) {
  static const int64_t rounds[] = {2};
  planc_job job = {.graph = graph, .batch = 2, .n_rounds = 1, .rounds = rounds, .iterations = 1};
  planc_plan *plan;
  ok(script_make(script, &job, 1, arena, host, &plan));
  return plan;
}

char *judge_edited(const char *text, const char *find, const char *replace) {
  const char *at = strstr(text, find);
  ck_assert_msg(at != NULL, "the script has no \"%s\"", find);
  size_t size = strlen(text) + strlen(replace) + 1;
  char *copy = malloc(size);
  ck_assert_ptr_nonnull(copy);
  snprintf(copy, size, "%.*s%s%s", (int)(at - text), text, replace, at + strlen(find));
  return copy;
}

/* A message's line must be that of the instruction in the text. What people read of a copy is which way it goes. */
static void expect_line(const char *text, const char *message) {
  static const char *const ways[] = {"prefetch ", "offload ", "move "};
  if (strncmp(message, "line ", 5) != 0) return;
  char *name, row[64];
  for (long n = strtol(message + 5, &name, 10); n > 1; n--) {
    text = strchr(text, '\n');
    ck_assert_ptr_nonnull(text);
    text++;
  }
  name += strlen(": ");
  snprintf(row, sizeof row, "{\"i\":\"%.*s\"", (int)strcspn(name, " "), name);
  for (size_t k = 0; k < sizeof ways / sizeof *ways; k++)
    if (strncmp(name, ways[k], strlen(ways[k])) == 0) snprintf(row, sizeof row, "{\"i\":\"copy\"");
  ck_assert_msg(strncmp(text, row, strlen(row)) == 0, "%s, but the line is %.40s", message, text);
}

void judge_expect(const planc_plan *plan, planc_code code, const char *message, const char *what) {
  planc_status status = planc_check(plan, NULL, NULL);
  ck_assert_msg(planc_status_code(status) == code && strstr(planc_status_message(status), message),
                "%s: expected \"%s\", but: %s", what, message, planc_status_message(status));
  char *text;
  size_t length;
  planc_plan *again;
  planc_status unprintable = planc_plan_print(plan, &text, &length);
  if (!unprintable) {
    expect_line(text, planc_status_message(status));
    planc_status unreadable = planc_plan_parse(text, length, "x.plan", &again);
    if (!unreadable) {
      planc_status same = planc_check(again, NULL, NULL);
      ck_assert_str_eq(planc_status_message(same), planc_status_message(status));
      planc_status_free(same);
      planc_plan_free(again);
    }
    planc_status_free(unreadable);
    free(text);
  }
  planc_status_free(unprintable);
  planc_status_free(status);
}
