/* Reading the options of settings (setting_options.h): one reader for each kind of value. */
#include "cli/setting_options.h"

planc_status cli_settings_read(const prog_arguments *arguments, planc_settings *settings) {
#define X(name, option, kind, least, most, standard, users, help)                                          \
  PLANC_TRY(cli_setting_##kind(option, prog_option_value(arguments, option), CLI_RANGE(name, least, most), \
                               &settings->name));
  PLANC_SETTINGS(X)
#undef X
  return NULL;
}

planc_status cli_setting_bytes(const char *option, const char *text, cli_range range, int64_t *out) {
  if (!text) return NULL;
  PLANC_TRY(prog_option_size_of(option, text, out));
  if (*out < range.least)
    return planc_error(PLANC_USAGE, "--%s: at least %lld byte%s", option, (long long)range.least,
                       range.least == 1 ? "" : "s");
  return *out <= range.most ? NULL
                            : planc_error(PLANC_USAGE, "--%s: at most %lld bytes", option, (long long)range.most);
}

planc_status cli_setting_count(const char *option, const char *text, cli_range range, int64_t *out) {
  return text ? prog_option_int_of(option, text, range.least, range.most, out) : NULL;
}

planc_status cli_setting_share(const char *option, const char *text, cli_range range, int64_t *out) {
  int64_t percent, least = (range.least + PLANC_UNIT_PERCENT - 1) / PLANC_UNIT_PERCENT;
  if (!text) return NULL;
  PLANC_TRY(prog_option_int_of(option, text, least, range.most / PLANC_UNIT_PERCENT, &percent));
  *out = percent * PLANC_UNIT_PERCENT;
  if (*out == range.standard) *out = 0;
  return NULL;
}

planc_status cli_setting_level(const char *option, const char *text, cli_range range, int64_t *out) {
  if (!text) return NULL;
  PLANC_TRY(prog_option_int_of(option, text, range.least - 1, range.most - 1, out));
  (*out)++;
  return NULL;
}

planc_status cli_setting_flag(const char *option, const char *text, cli_range range, int64_t *out) {
  (void)option;
  if (text) *out = range.most;
  return NULL;
}
