#ifndef aegis_H
#define aegis_H

/* In the place of libaegis's own: the one variant that is built here, and what its files expect of this header. */

#include <stdint.h>

#define AEGIS_WARN_UNUSED_RESULT __attribute__((warn_unused_result))
#define AEGIS_DEPRECATED(msg)    __attribute__((deprecated(msg)))

#include "aegis256x4.h"

AEGIS_WARN_UNUSED_RESULT
int aegis_verify_16(const uint8_t *x, const uint8_t *y);
AEGIS_WARN_UNUSED_RESULT
int aegis_verify_32(const uint8_t *x, const uint8_t *y);

#endif
