/* Verdicts as text, JSON, workflow commands of GitHub Actions, and JUnit's XML (verdict.h). Paths and messages may hold
 * any bytes: each form has characters that it must not let through. */
#include "cli/verdict.h"

#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"
#include "program/print.h"

#define X(form) static planc_status print_##form(const cli_verdict *verdicts, int32_t n);
CLI_VERDICT_FORMS(X)
#undef X

planc_status cli_verdict_form_parse(const char *name, cli_verdict_form *out) {
  static const char *const names[] = {
#define X(form) #form,
      CLI_VERDICT_FORMS(X)
#undef X
  };
  for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
    if (strcmp(names[i], name) != 0) continue;
    *out = (cli_verdict_form)i;
    return NULL;
  }
  return planc_error(PLANC_USAGE, "--format takes text, json, github or junit, not %s", name);
}

planc_status cli_verdicts_print(cli_verdict_form form, const cli_verdict *verdicts, int32_t n) {
  static planc_status (*const prints[])(const cli_verdict *, int32_t) = {
#define X(form) print_##form,
      CLI_VERDICT_FORMS(X)
#undef X
  };
  return prints[form](verdicts, n);
}

static const char *what_is_wrong(planc_code code) {
  static const char *const texts[] = {
#define X(name, exit_code, text) text,
      PLANC_CODES(X)
#undef X
  };
  return texts[code];
}

/* Whether `v` is of another plan than the verdict before it. */
static bool is_first_of_plan(const cli_verdict *verdicts, int32_t v) {
  return v == 0 || verdicts[v].path != verdicts[v - 1].path;
}

/* --- Text --------------------------------------------------------------------------------------------------------- */

/* Who checks several plans wants to know which one a line is about. */
static planc_status print_text(const cli_verdict *verdicts, int32_t n) {
  for (int32_t v = 0; v < n; v++) {
    if (verdicts[v].refusal) continue;
    if (n > 1) {
      prog_print_text(stdout, verdicts[v].path);
      fputs(": ", stdout);
    }
    prog_print_line(stdout, "%s", verdicts[v].summary);
  }
  return NULL;
}

/* --- JSON --------------------------------------------------------------------------------------------------------- */

static void report_passed(cJSON *object, const cli_verdict *verdict) {
  const planc_check_report *report = &verdict->report;
  pl_json_add_int(object, "peak_bytes", report->peak_bytes[PLANC_MEMORY_DEVICE]);
  pl_json_add_int(object, "host_peak_bytes", report->peak_bytes[PLANC_MEMORY_HOST]);
  pl_json_add_int(object, "storage_peak_bytes", report->peak_bytes[PLANC_MEMORY_STORAGE]);
  pl_json_add_int(object, "touched_bytes", report->touched_bytes[PLANC_MEMORY_DEVICE]);
  pl_json_add_int(object, "instances", report->instances);
  pl_json_add_int(object, "instructions", report->instructions);
  pl_json_add_int(object, "recomputed", report->recomputed);
  if (verdict->jobs) pl_json_add(object, "jobs", cJSON_Duplicate(verdict->jobs, true));
}

static planc_status print_json(const cli_verdict *verdicts, int32_t n) {
  for (int32_t v = 0; v < n; v++) {
    const cli_verdict *verdict = &verdicts[v];
    cJSON *object = cJSON_CreateObject();
    pl_json_add_string(object, "planc", "check/1");
    pl_json_add_string(object, "plan", verdict->path);
    pl_json_add_bool(object, "valid", !verdict->refusal);
    if (verdict->budget_bytes >= 0) {
      pl_json_add_int(object, "budget_bytes", verdict->budget_bytes);
    } else {
      pl_json_add_null(object, "budget_bytes");
    }
    if (verdict->refusal) {
      pl_json_add_int(object, "exit_code", planc_exit_code(planc_status_code(verdict->refusal)));
      pl_json_add_string(object, "message", planc_status_message(verdict->refusal));
    } else {
      report_passed(object, verdict);
    }
    PLANC_TRY(prog_print_json(stdout, object));
  }
  return NULL;
}

/* --- GitHub Actions ----------------------------------------------------------------------------------------------- */

/* A workflow command's property or message: "Workflow commands for GitHub Actions", and toolkit's command.ts. What of
 * it ends up in the log must not be obeyed there. */
static void put_escaped(const char *text, bool property) {
  prog_character c;
  for (const char *at = text; *at; at += c.length) {
    c = prog_character_at(text, at);
    bool special = *at == '%' || *at == '\r' || *at == '\n' || (property && (*at == ':' || *at == ','));
    if (special) {
      printf("%%%02X", (unsigned)*at);
    } else if (c.code < 0 || c.obeyed) {
      for (int i = 0; i < c.length; i++) printf("\\x%02x", (unsigned)(unsigned char)at[i]);
    } else {
      fwrite(at, 1, (size_t)c.length, stdout);
    }
  }
}

/* The line that a message names: "PATH:LINE:COLUMN: ..." (reader) or "PATH: line LINE: ..." (checker); 0 if none. */
static long line_of(const cli_verdict *verdict) {
  const char *message = planc_status_message(verdict->refusal);
  size_t length = strlen(verdict->path);
  if (strncmp(message, verdict->path, length) != 0) return 0;
  const char *at = message + length;
  if (strncmp(at, ": line ", 7) == 0) {
    at += 7;
  } else if (*at == ':') {
    at++;
  }
  char *end;
  long line = *at >= '1' && *at <= '9' ? strtol(at, &end, 10) : 0;
  return line > 0 && *end == ':' ? line : 0;
}

static planc_status print_github(const cli_verdict *verdicts, int32_t n) {
  for (int32_t v = 0; v < n; v++) {
    const cli_verdict *verdict = &verdicts[v];
    if (!verdict->refusal) {
      if (n > 1) {
        put_escaped(verdict->path, false);
        fputs(": ", stdout);
      }
      put_escaped(verdict->summary, false);
      putchar('\n');
      continue;
    }
    fputs("::error file=", stdout);
    put_escaped(verdict->path, true);
    long line = line_of(verdict);
    if (line) printf(",line=%ld", line);
    fputs(",title=", stdout);
    put_escaped("planc: ", true);
    put_escaped(what_is_wrong(planc_status_code(verdict->refusal)), true);
    fputs("::", stdout);
    put_escaped(planc_status_message(verdict->refusal), false);
    putchar('\n');
  }
  return NULL;
}

/* --- JUnit -------------------------------------------------------------------------------------------------------- */

static void put_counts(const cli_verdict *verdicts, int32_t n);
static bool is_failure(planc_status refusal);
static void put_attribute(const char *name, const char *value);
static void put_xml(const char *text);
static void put_case(const cli_verdict *verdict);

static planc_status print_junit(const cli_verdict *verdicts, int32_t n) {
  puts("<?xml version=\"1.0\" encoding=\"UTF-8\"?>");
  fputs("<testsuites name=\"planc check\"", stdout);
  put_counts(verdicts, n);
  puts(">");
  for (int32_t v = 0; v < n;) {
    int32_t end = v + 1;
    while (end < n && !is_first_of_plan(verdicts, end)) end++;
    fputs("  <testsuite", stdout);
    put_attribute("name", verdicts[v].path);
    put_counts(&verdicts[v], end - v);
    puts(">");
    for (; v < end; v++) put_case(&verdicts[v]);
    puts("  </testsuite>");
  }
  puts("</testsuites>");
  return NULL;
}

static void put_counts(const cli_verdict *verdicts, int32_t n) {
  int32_t failures = 0, errors = 0;
  for (int32_t v = 0; v < n; v++) {
    if (!verdicts[v].refusal) continue;
    if (is_failure(verdicts[v].refusal)) {
      failures++;
    } else {
      errors++;
    }
  }
  printf(" tests=\"%d\" failures=\"%d\" errors=\"%d\"", n, failures, errors);
}

/* A plan that could be judged and did not pass is a failure; one that could not be judged is an error. */
static bool is_failure(planc_status refusal) {
  planc_code code = planc_status_code(refusal);
  return code == PLANC_INFEASIBLE || code == PLANC_INVALID_PLAN || code == PLANC_STALE;
}

static void put_attribute(const char *name, const char *value) {
  printf(" %s=\"", name);
  put_xml(value);
  putchar('"');
}

/* XML 1.0 has no way to write most control characters, U+FFFE and U+FFFF; bytes that are no UTF-8 are no characters at
 * all. Each becomes U+FFFD. Blanks other than spaces are written by number, for attributes are normalised, and so is
 * what a terminal or a log obeys. */
static void put_xml(const char *text) {
  prog_character c;
  for (const char *at = text; *at; at += c.length) {
    c = prog_character_at(text, at);
    bool blank = c.code == '\t' || c.code == '\n' || c.code == '\r';
    if ((c.code < 0x20 && !blank) || c.code == 0xfffe || c.code == 0xffff) {
      fputs("\xef\xbf\xbd", stdout);
    } else if (c.obeyed || (c.length == 1 && strchr("&<>\"'", *at))) {
      printf("&#%d;", (int)c.code);
    } else {
      fwrite(at, 1, (size_t)c.length, stdout);
    }
  }
}

static void put_case(const cli_verdict *verdict) {
  fputs("    <testcase", stdout);
  put_attribute("classname", verdict->path);
  fputs(" name=\"", stdout);
  put_xml(verdict->budget ? "budget " : "its own budget");
  put_xml(verdict->budget ? verdict->budget : "");
  fputs("\">\n", stdout);
  if (verdict->refusal) {
    const char *kind = is_failure(verdict->refusal) ? "failure" : "error";
    printf("      <%s", kind);
    put_attribute("type", what_is_wrong(planc_status_code(verdict->refusal)));
    put_attribute("message", planc_status_message(verdict->refusal));
    putchar('>');
    put_xml(planc_status_message(verdict->refusal));
    printf("</%s>\n", kind);
  } else {
    fputs("      <system-out>", stdout);
    put_xml(verdict->summary);
    puts("</system-out>");
  }
  puts("    </testcase>");
}
