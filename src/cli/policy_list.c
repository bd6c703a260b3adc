/* Lists of policies (policy_list.h). */
#include "cli/policy_list.h"

#include <assert.h>
#include <stdlib.h>

static planc_status make_room(cli_policy_list *out);
static planc_status choose(const char *names, cli_policy_list *out);
static planc_status add_named(void *user, const char *name);
static planc_status add(cli_policy_list *list, const planc_policy *policy);
static planc_status check_options(const prog_arguments *arguments, const cli_policy_list *list);

planc_status cli_policy_list_read(const prog_arguments *arguments, cli_policy_list *out) {
  *out = (cli_policy_list){0};
  PLANC_TRY(make_room(out));
  PLANC_TRY(choose(prog_option_value(arguments, "policies"), out));
  return check_options(arguments, out);
}

void cli_policy_list_free(cli_policy_list *list) {
  free(list->policies);
}

/* As no policy is there twice, there are at most as many as the table of policies has. */
static planc_status make_room(cli_policy_list *out) {
  while (planc_policies()[out->most].name) out->most++;
  out->policies = calloc((size_t)out->most + 1, sizeof *out->policies);
  return out->policies ? NULL : planc_error(PLANC_OUT_OF_MEMORY, "out of memory");
}

static planc_status choose(const char *names, cli_policy_list *out) {
  if (names) {
    PLANC_TRY(cli_each_name(names, add_named, out));
    return out->n > 0 ? NULL : planc_error(PLANC_USAGE, "--policies names no policy");
  }
  for (const planc_policy *policy = planc_policies(); policy->name; policy++)
    if (!(policy->supports & PLANC_POLICY_CHOOSES)) PLANC_TRY(add(out, policy));
  return NULL;
}

static planc_status add_named(void *user, const char *name) {
  const planc_policy *policy;
  PLANC_TRY(cli_setup_policy(name, PLANC_USAGE, &policy));
  return add(user, policy);
}

static planc_status add(cli_policy_list *list, const planc_policy *policy) {
  for (int32_t i = 0; i < list->n; i++)
    if (list->policies[i] == policy) return planc_error(PLANC_USAGE, "--policies names %s twice", policy->name);
  assert(list->n < list->most);
  list->policies[list->n++] = policy;
  return NULL;
}

static planc_status check_options(const prog_arguments *arguments, const cli_policy_list *list) {
  uint32_t supports = 0;
  assert(list->n > 0 && list->policies[0]);
  for (int32_t i = 0; i < list->n; i++) supports |= list->policies[i]->supports;
  return cli_setup_useful(arguments, list->n == 1 ? list->policies[0]->name : NULL, supports);
}
