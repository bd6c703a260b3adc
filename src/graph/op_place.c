/* The attributes by which a recorded op names its user's line. */
#include "graph/op_place.h"

#include <stdio.h>
#include <string.h>

static const char *text_of(const planc_op *op, const char *key) {
  const planc_attr *attr = planc_op_attr(op, key);
  return attr && attr->type == PLANC_ATTR_STRING ? attr->value.string : NULL;
}

/* Without the file's folders, which are the same of nearly all. */
const char *pl_op_place(const planc_op *op, char text[PL_PLACE_TEXT]) {
  static const char behind[] = " (";
  const char *line = text_of(op, "line");
  *text = 0;
  if (!line || !*line || !text_of(op, "call")) return text;
  const char *slash = strrchr(line, '/'), *name = slash ? slash + 1 : line, *pass = strstr(name, behind);
  if (pass)
    snprintf(text, PL_PLACE_TEXT, " (%.*s, %s", (int)(pass - name), name, pass + strlen(behind));
  else
    snprintf(text, PL_PLACE_TEXT, " (%s)", name);
  return text;
}

const char *pl_op_place_by_name(const planc_graph *graph, const char *op, char text[PL_PLACE_TEXT]) {
  *text = 0;
  for (int32_t o = 0; o < graph->n_ops; o++)
    if (strcmp(graph->ops[o].name, op) == 0) return pl_op_place(&graph->ops[o], text);
  return text;
}
