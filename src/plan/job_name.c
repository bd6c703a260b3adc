/* Names of jobs (job_name.h). */
#include "plan/job_name.h"

#include <string.h>

#define LETTERS "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"

size_t pl_job_name_length(const char *text) {
  return strspn(text, LETTERS) == 0 ? 0 : strspn(text, LETTERS "0123456789-_");
}

const char *pl_job_name_fault(const char *name) {
  size_t length = pl_job_name_length(name);
  if (length == 0) return "does not begin with a letter";
  if (name[length] != '\0') return "has other characters than letters, digits, - and _";
  return length > PL_JOB_NAME_MAX ? "is longer than 63 characters" : NULL;
}
