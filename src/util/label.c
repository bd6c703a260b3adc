/* What a label may be (label.h). */
#include "util/label.h"

#include <string.h>

const char *pl_label_fault(const char *text) {
  enum { MOST = 255 };
  size_t length = 0;
  for (; text[length]; length++) {
    char c = text[length];
    if (c <= ' ' || c > '~' || c == '"' || c == '\\') {
      return "must be printable ASCII without spaces, quotes and backslashes";
    }
  }
  if (length == 0) return "must not be empty";
  if (*text == ':' || strstr(text, "##")) return "must not begin with : or have ##";
  return length <= MOST ? NULL : "is longer than 255 characters";
}
