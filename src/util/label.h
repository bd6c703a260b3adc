/* Labels: names of devices, policies and algorithms, in profiles and plans. */
#ifndef PLANC_UTIL_LABEL_H
#define PLANC_UTIL_LABEL_H

/* What forbids a text as a label: it is 1 to 255 characters of printable ASCII, no space, no quote, no backslash, and
 * nothing that a build server could take for a command. NULL: nothing. */
const char *pl_label_fault(const char *text);

#endif
