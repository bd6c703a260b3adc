/* The version of planc, planrun and their libraries; the pkg-config file takes it from here. */
#ifndef PLANC_VERSION_H
#define PLANC_VERSION_H

#define PLANC_VERSION "0.1.0"

#endif
