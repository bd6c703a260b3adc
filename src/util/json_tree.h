/* JSON to be printed, as trees of cJSON; and trees from text, whatever the program's locale.
 *
 * A value that found no memory spoils the object or array that it was to go into, and what is spoilt is not printed.
 * So trees are built without a check after every value, and printing tells at the end. */
#ifndef PLANC_UTIL_JSON_TREE_H
#define PLANC_UTIL_JSON_TREE_H

#include <cjson/cJSON.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "planc/status.h"
#include "util/emit.h"

/* Takes `item` into an object, or with no key into an array. Gives it back, NULL where it could not be taken: that,
 * too, may be added to. Everything below gives what it has added in this way. */
cJSON *pl_json_add(cJSON *to, const char *key, cJSON *item);
cJSON *pl_json_add_object(cJSON *to, const char *key);
cJSON *pl_json_add_array(cJSON *to, const char *key);
/* Printed digit by digit up to 2^53 on either side; a real number beyond. */
cJSON *pl_json_add_int(cJSON *to, const char *key, int64_t value);
cJSON *pl_json_add_real(cJSON *to, const char *key, double value);
cJSON *pl_json_add_string(cJSON *to, const char *key, const char *value);
cJSON *pl_json_add_bool(cJSON *to, const char *key, bool value);
cJSON *pl_json_add_null(cJSON *to, const char *key);
/* Null where the value is not known; and where a real is not finite. */
cJSON *pl_json_add_known(cJSON *to, const char *key, bool known, int64_t value);
cJSON *pl_json_add_finite(cJSON *to, const char *key, double value);

/* Whether there is a tree and nothing in it is spoilt. */
bool pl_json_is_whole(const cJSON *tree);
/* As text with a NUL behind it, malloc'ed: on one line without its end; or one member of an object a line, as a file.
 */
typedef enum pl_json_layout { PL_JSON_LINE, PL_JSON_LINES } pl_json_layout;
planc_status pl_json_print(const cJSON *tree, pl_json_layout layout, char **out_text, size_t *out_length);

/* The tree of the JSON value that `text` begins with, to be freed with cJSON_Delete; NULL after a failure. *out_end
 * (may be NULL) is where the value ends, or where its fault is. */
planc_status pl_json_tree(const char *text, size_t length, const char **out_end, cJSON **out);

#endif
