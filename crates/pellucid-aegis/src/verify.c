/* Comparison of tags in constant time, which libaegis has in a file that also picks among all its variants. */
#include "names.h"

#include <stddef.h>
#include <stdint.h>

#include "aegis.h"

static int
differ(const uint8_t *x, const uint8_t *y, size_t bytes)
{
    uint32_t all = 0;
    size_t   i;

    for (i = 0; i < bytes; i++) {
        all |= (uint32_t) (x[i] ^ y[i]);
        /* So that no compiler finds out that the rest does not matter. */
        __asm__ volatile("" : "+r"(all));
    }
    /* 0 where all is 0, else -1. */
    return (int) ((all - 1) >> 31) - 1;
}

int
aegis_verify_16(const uint8_t *x, const uint8_t *y)
{
    return differ(x, y, 16);
}

int
aegis_verify_32(const uint8_t *x, const uint8_t *y)
{
    return differ(x, y, 32);
}
