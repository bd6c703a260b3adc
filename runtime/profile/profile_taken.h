/* What the device takes beside the arena, in pieces of a profile and in the profile. */
#ifndef PLANRT_PROFILE_TAKEN_H
#define PLANRT_PROFILE_TAKEN_H

#include <cjson/cJSON.h>

#include "runtime/profile/measure.h"

/* Keeps it in a piece of ops. `taken` may be NULL. */
void rt_piece_add_taken(cJSON *piece, const rt_memory_taken *taken);

/* What a profile of these pieces is to reserve on a device of `memory_bytes`, whatever algorithms run; 0: nothing was
 * taken. */
planc_status rt_profile_reserved(const cJSON *pieces, int64_t memory_bytes, int64_t *out);
/* Whether code was loaded. */
bool rt_pieces_have_code(const cJSON *pieces);
/* Adds section "code", if code was loaded. */
void rt_profile_add_code(cJSON *root, const cJSON *pieces);

#endif
