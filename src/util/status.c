/* Status objects: one allocation each, the message follows the code. */
#include "planc/status.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct planc_status_object {
  planc_code code;
  planc_shortage shortage;
  planc_remedy remedy;
  const char *message;
  char text[];
};

/* Shared and constant, so that running out of memory can be reported without memory. */
static const struct planc_status_object out_of_memory = {.code = PLANC_OUT_OF_MEMORY, .message = "out of memory"};

static planc_status compose(planc_code code, const char *format, va_list arguments, const char *after);

planc_status planc_error(planc_code code, const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  planc_status status = compose(code, format, arguments, "");
  va_end(arguments);
  return status;
}

static planc_status shared_out_of_memory(void) {
  return (planc_status)&out_of_memory;
}

/* "`format...``after`" in a new status; the shared one when there is no memory. */
static planc_status compose(planc_code code, const char *format, va_list arguments, const char *after) {
  va_list again;
  va_copy(again, arguments);
  int length = vsnprintf(NULL, 0, format, again);
  va_end(again);
  if (length < 0) return shared_out_of_memory();
  size_t tail = strlen(after);
  planc_status status = malloc(sizeof *status + (size_t)length + tail + 1);
  if (!status) return shared_out_of_memory();
  *status = (struct planc_status_object){.code = code};
  vsnprintf(status->text, (size_t)length + 1, format, arguments);
  memcpy(status->text + length, after, tail + 1);
  status->message = status->text;
  return status;
}

planc_status planc_infeasible(planc_shortage shortage, const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  planc_status status = compose(PLANC_INFEASIBLE, format, arguments, "");
  va_end(arguments);
  if (status != shared_out_of_memory()) status->shortage = shortage;
  return status;
}

planc_status planc_refusal(planc_code code, planc_remedy remedy, const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  planc_status status = compose(code, format, arguments, "");
  va_end(arguments);
  if (status != shared_out_of_memory()) status->remedy = remedy;
  return status;
}

planc_status planc_context(planc_status status, const char *format, ...) {
  if (!status) return NULL;
  planc_status tail = planc_error(status->code, ": %s", status->message);
  va_list arguments;
  va_start(arguments, format);
  planc_status joined = compose(status->code, format, arguments, planc_status_message(tail));
  va_end(arguments);
  if (joined != shared_out_of_memory()) {
    joined->shortage = status->shortage;
    joined->remedy = status->remedy;
  }
  planc_status_free(tail);
  planc_status_free(status);
  return joined;
}

planc_code planc_status_code(planc_status status) {
  return status ? status->code : PLANC_OK;
}

planc_shortage planc_status_shortage(planc_status status) {
  return status ? status->shortage : (planc_shortage){0};
}

planc_remedy planc_status_remedy(planc_status status) {
  return status ? status->remedy : PLANC_REMEDY_NONE;
}

const char *planc_status_message(planc_status status) {
  return status ? status->message : "ok";
}

int planc_exit_code(planc_code code) {
  static const int exit_codes[] = {
#define X(name, exit_code, text) exit_code,
      PLANC_CODES(X)
#undef X
  };
  return exit_codes[code];
}

void planc_status_free(planc_status status) {
  if (status != shared_out_of_memory()) free(status);
}
