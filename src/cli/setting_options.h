/* Settings of policies (PLANC_SETTINGS) as options of the command line. */
#ifndef PLANC_CLI_SETTING_OPTIONS_H
#define PLANC_CLI_SETTING_OPTIONS_H

#include "planc/settings.h"
#include "program/options.h"

/* The option of a setting, with a comma behind it. */
#define CLI_SETTING(option, kind, least, most, help, text) \
  {option, 0, CLI_ARGUMENT_##kind, CLI_HELP_##kind(help, least, most, text)},
#define CLI_OWN_SETTING(name, option, kind, least, most, standard, users, help) \
  CLI_SETTING(option, kind, least, most, help, PLANC_SETTING_TEXT(standard))
#define CLI_ARGUMENT_bytes "SIZE"
#define CLI_ARGUMENT_count "N"
#define CLI_ARGUMENT_share "PERCENT"
#define CLI_ARGUMENT_flag NULL
#define CLI_ARGUMENT_level "LEVEL"
#define CLI_HELP_bytes(help, least, most, text) help " (default: " text ")"
#define CLI_HELP_count(help, least, most, text) help ", " #least " to " #most " (default: " text ")"
/* Shares are from a part per million to all, and options in per cent. */
#define CLI_HELP_share(help, least, most, text) help ", 1 to 100 (default: " text ")"
#define CLI_HELP_flag(help, least, most, text) help
#define CLI_HELP_level(help, least, most, text) help ", 0 to 3 (default: " text ")"

/* What a row of the table says of values. */
typedef struct cli_range {
  int64_t least, most, standard;
} cli_range;
#define CLI_RANGE(name, least, most)   \
  (cli_range) {                        \
    least, most, PLANC_STANDARD_##name \
  }

/* Each reads a setting of its kind from what is given with an option; NULL for `text`: nothing, and the setting stays
 * what it is. USAGE where it is out of its range. */
planc_status cli_setting_bytes(const char *option, const char *text, cli_range range, int64_t *out);
planc_status cli_setting_count(const char *option, const char *text, cli_range range, int64_t *out);
/* Of per cent. What is the default anyway is not stated. */
planc_status cli_setting_share(const char *option, const char *text, cli_range range, int64_t *out);
planc_status cli_setting_flag(const char *option, const char *text, cli_range range, int64_t *out);
planc_status cli_setting_level(const char *option, const char *text, cli_range range, int64_t *out);

/* All; settings that are not given, or are no options of the command, stay what they are. */
planc_status cli_settings_read(const prog_arguments *arguments, planc_settings *settings);

#endif
