/* Finding the files that come with the programs. */
#ifndef PLANC_UTIL_LOCATE_H
#define PLANC_UTIL_LOCATE_H

#include <stdbool.h>
#include <stddef.h>

#include "planc/status.h"

/* The description of device `name`: a path (something with a slash, or with .json in it) as it is, else NAME.json in
 * $PLANC_PROFILES or beside the program (build tree or installed). BAD_INPUT when there is none. */
planc_status pl_locate_device(const char *name, char *out, size_t room);
/* Its description and its properties, which stand beside each other as NAME.json and NAME.properties.json; a path may
 * be that of either. BAD_INPUT when a name has only the first, or none; whether paths lead somewhere is not looked at.
 */
planc_status pl_locate_properties(const char *name, char *out_description, char *out_properties, size_t room);
/* The path of the program that runs; empty where the system does not say. */
void pl_locate_program(char *out, size_t room);
/* The folder that holds the Python package `name`, beside the program (build tree or installed); false: there is none.
 */
bool pl_locate_package(const char *name, char *out, size_t room);

#endif
