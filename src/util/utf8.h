/* UTF-8, as far as telling text from other bytes needs it. */
#ifndef PLANC_UTIL_UTF8_H
#define PLANC_UTIL_UTF8_H

/* Bytes of the well-formed sequence at `at`, which ends before `end`; 0 if there is none. */
int pl_utf8_length(const char *at, const char *end);

#endif
