/* Which settings a plan can have (settings.h). */
#include "planc/settings.h"

#include "planc/plan.h"

static planc_status check_range(const char *setting, int64_t value, int64_t least, int64_t most) {
  if (value == 0 || (value >= least && value <= most)) return NULL;
  return planc_error(PLANC_USAGE, "setting %s: %lld is not between %lld and %lld", setting, (long long)value,
                     (long long)least, (long long)most);
}

planc_status planc_settings_check(const planc_settings *settings) {
#define X(name, option, kind, least, most, standard, users, help) \
  PLANC_TRY(check_range(#name, settings->name, (least), (most)));
  PLANC_SETTINGS(X)
#undef X
  if (settings->region % PLANC_ALIGNMENT != 0)
    return planc_error(PLANC_USAGE, "regions of %lld bytes: their size must be a multiple of %d",
                       (long long)settings->region, (int)PLANC_ALIGNMENT);
  if (settings->split_size > 0 && settings->split_groups > 0)
    return planc_error(PLANC_USAGE, "node groups have a size or a number, not both");
  return NULL;
}
