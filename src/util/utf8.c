/* Telling UTF-8 from other bytes (utf8.h). */
#include "util/utf8.h"

#include <stdbool.h>

int pl_utf8_length(const char *at, const char *end) {
  const unsigned char *byte = (const unsigned char *)at;
  if (at >= end) return 0;
  int length = byte[0] < 0x80   ? 1
               : byte[0] < 0xc2 ? 0
               : byte[0] < 0xe0 ? 2
               : byte[0] < 0xf0 ? 3
               : byte[0] < 0xf5 ? 4
                                : 0;
  if (length == 0 || end - at < length) return 0;
  for (int i = 1; i < length; i++) {
    if ((byte[i] & 0xc0) != 0x80) return 0;
  }
  bool overlong = (byte[0] == 0xe0 && byte[1] < 0xa0) || (byte[0] == 0xf0 && byte[1] < 0x90);
  bool surrogate = byte[0] == 0xed && byte[1] >= 0xa0;
  bool beyond = byte[0] == 0xf4 && byte[1] >= 0x90;
  return overlong || surrogate || beyond ? 0 : length;
}
